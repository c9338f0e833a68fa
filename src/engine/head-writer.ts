import { ByteWriter, utf16Bytes } from "../codec/byte-writer.ts";
import type { Encoder } from "../codec/encoder.ts";
import { LAYOUT, TAG } from "../codec/wire.ts";
import { CheckpointError } from "../errors.ts";
import type { Cell, Head, Origin } from "./head.ts";

/** A time as `toISOString` writes it. */
const ISO_FORM = "0000-00-00T00:00:00.000Z";
const DIGIT = "0".charCodeAt(0);
const DAY_MS = 24 * 60 * 60 * 1000;
const DAYS_IN_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const NIL = 0xc0;

/**
 * Packs heads: `[v, ts, versions, seen, metadata cell, origin, channel, cell, channel, cell...]` in the codec's own
 * format; an origin is null or `[actor, absorbed, id of the original or null, versions or null, actors that put it again...]`, a cell a
 * number for a blob, bytes for a value of the built-in codec, or a pair of tag and bytes for one of a custom serializer.
 *
 * The codec would write the same, but look at everything for what can't be in there: one is packed at every step.
 */
export class HeadWriter extends ByteWriter {
	readonly #encoder: Encoder;

	constructor(encoder: Encoder) {
		super();
		this.#encoder = encoder;
	}

	write(head: Head): Uint8Array {
		this.at = 0;
		this.writeByte(LAYOUT.array);
		this.#writePlain(head.v);
		this.#writePlain(packTime(head.ts));
		this.#writeVersions(head.versions);
		this.#writeSeen(head.seen);
		this.#writeCell(head.metadata);
		this.#writeOrigin(head.origin);
		for (const [channel, cell] of head.manifest) {
			this.#writeName(channel);
			this.#writeCell(cell);
		}
		return this.takeWritten();
	}

	#writeSeen(seen: Head["seen"]): void {
		const nodes = Object.keys(seen);
		this.writeMapHeader(nodes.length);
		for (const node of nodes) {
			this.#writeKey(node);
			this.#writeVersions(seen[node] as Head["versions"]);
		}
	}

	#writeVersions(versions: Head["versions"]): void {
		const names = Object.keys(versions);
		this.writeMapHeader(names.length);
		for (const name of names) {
			this.#writeKey(name);
			this.#writePlain(versions[name]);
		}
	}

	#writeOrigin(origin: Origin | undefined): void {
		if (origin === undefined) return this.writeByte(NIL);
		const { actor, absorbed, copyOf, resumedAt, again } = origin;
		this.writeArrayHeader(4 + again.length);
		for (const part of [actor, absorbed, copyOf ?? null, resumedAt ?? null, ...again]) this.#writePlain(part);
	}

	#writeCell(cell: Cell): void {
		if (typeof cell === "number") return this.writeNumber(cell);
		if (cell.type !== undefined) {
			this.writeArrayHeader(2);
			this.#writeName(cell.type);
		}
		this.writeBin(cell.bytes);
	}

	/** A number or text, as a rule; whatever else it is, as the codec writes it. */
	#writePlain(value: unknown): void {
		if (typeof value === "number") return this.writeNumber(value);
		if (typeof value === "string") return this.#writeName(value);
		const list = this.#encoder.encode([value]);
		if (list[0] !== LAYOUT.array)
			throw new CheckpointError("UNSERIALIZABLE", "Can't store a checkpoint: a version of a channel refers to itself.");
		// What comes first tells the layout of the list.
		this.reserve(list.length);
		this.writeRaw(list.subarray(1));
	}

	#writeKey(name: string): void {
		if (!this.writeKey(name)) this.#writeName(name);
	}

	#writeName(name: string): void {
		if (this.writeText(name)) return;
		this.writeTag(TAG.utf16, 1);
		this.writeBin(utf16Bytes(name));
	}
}

/** Milliseconds in place of the text that LangGraph makes of them. To ask `Date` takes ten times as long. */
function packTime(ts: string): string | number {
	if (typeof ts !== "string" || ts.length !== ISO_FORM.length || !hasIsoMarks(ts)) return ts;
	const year = numberAt(ts, 0, 4);
	const month = numberAt(ts, 5, 2);
	const day = numberAt(ts, 8, 2);
	const hours = numberAt(ts, 11, 2);
	const minutes = numberAt(ts, 14, 2);
	const seconds = numberAt(ts, 17, 2);
	const milliseconds = numberAt(ts, 20, 3);
	// Nothing is true of what is not a number. The first years are not worth the care that they take.
	const isDate = year >= 100 && month >= 1 && day >= 1 && day <= daysIn(year, month);
	if (!isDate || !(hours <= 23 && minutes <= 59 && seconds <= 59 && milliseconds <= 999)) return ts;
	return daysBefore(year, month, day) * DAY_MS + ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds;
}

function hasIsoMarks(ts: string): boolean {
	for (let i = 4; i < ISO_FORM.length; i += i === 19 ? 4 : 3) if (ts[i] !== ISO_FORM[i]) return false;
	return true;
}

/** Not a number if there is anything but digits. */
function numberAt(text: string, start: number, digits: number): number {
	let number = 0;
	for (let i = start; i < start + digits; i++) {
		const digit = text.charCodeAt(i) - DIGIT;
		if (digit < 0 || digit > 9) return Number.NaN;
		number = number * 10 + digit;
	}
	return number;
}

function daysIn(year: number, month: number): number {
	const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
	return month === 2 && isLeap ? 29 : (DAYS_IN_MONTH[month - 1] ?? 0);
}

/** Days since 1970. Years are counted from March here, so that the day that only some have is their last. */
function daysBefore(year: number, month: number, day: number): number {
	const y = month > 2 ? year : year - 1;
	const leapDays = Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400);
	const daysOfMonths = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5);
	return y * 365 + leapDays + daysOfMonths + day - 1 - 719_468;
}

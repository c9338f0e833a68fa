import type { Encoded } from "../codec/codec.ts";
import { Decoder } from "../codec/decoder.ts";
import { Encoder } from "../codec/encoder.ts";
import { CheckpointError } from "../errors.ts";

/** A time as `toISOString` writes it. */
const ISO_FORM = "0000-00-00T00:00:00.000Z";
const ISO_LENGTH = ISO_FORM.length;
const DIGIT = "0".charCodeAt(0);
/** Bytes up to this length are part of the object that holds them, so that a copy is quicker than another view of them. */
const SHORT_BYTES = 64;

/** Where a value is: in a blob, or right here. */
export type Cell = number | Encoded;

/** How a checkpoint came to be, for the attribution of writes. */
export interface Origin {
	/** Names the run or state update that put it, where that is known. */
	readonly actor: number | undefined;
	/** Whether an update took over tasks of its parent that had finished. */
	readonly absorbed: boolean;
	/** The checkpoint that it is a copy of. */
	readonly copyOf: string | undefined;
	/** The runs that put it again later. */
	readonly again: readonly number[];
}

/** All of a checkpoint but its identity. */
export interface Head {
	readonly v: number;
	readonly ts: string;
	readonly versions: Readonly<Record<string, string | number>>;
	readonly seen: Readonly<Record<string, Readonly<Record<string, string | number>>>>;
	readonly metadata: Encoded;
	/** `undefined` where no channel can be rebuilt from writes. */
	readonly origin: Origin | undefined;
	/** Channel to value, in the order of `channel_values`. A channel that is not here has no value. */
	readonly manifest: ReadonlyMap<string, Cell>;
}

const encoder = new Encoder();
const decoder = new Decoder();

/**
 * `[v, ts, versions, seen, metadata cell, origin, channel, cell, channel, cell...]` in the codec's own format; an origin
 * is null or `[actor, absorbed, id of the original or null, actors that put it again...]`.
 */
export function packHead(head: Head): Uint8Array {
	const { origin } = head;
	const made = origin && [origin.actor, origin.absorbed, origin.copyOf ?? null, ...origin.again];
	const fields: unknown[] = [
		head.v,
		packTime(head.ts),
		head.versions,
		head.seen,
		packCell(head.metadata),
		made ?? null,
	];
	for (const [channel, cell] of head.manifest) fields.push(channel, packCell(cell));
	return encoder.encode(fields);
}

export function unpackHead(bytes: Uint8Array): Head {
	const [v, ts, versions, seen, metadata, made, ...rest] = unpackList(bytes);
	const manifest = new Map<string, Cell>();
	for (let i = 0; i < rest.length; i += 2) manifest.set(rest[i] as string, unpackCell(rest[i + 1]));
	return {
		v: v as number,
		ts: typeof ts === "number" ? new Date(ts).toISOString() : (ts as string),
		versions: versions as Head["versions"],
		seen: seen as Head["seen"],
		metadata: unpackCell(metadata) as Encoded,
		origin: Array.isArray(made) ? unpackOrigin(made) : undefined,
		manifest,
	};
}

/** Milliseconds in place of the text that LangGraph makes of them. */
function packTime(ts: string): string | number {
	if (typeof ts !== "string" || ts.length !== ISO_LENGTH || !hasIsoForm(ts)) return ts;
	const [month, day] = [numberAt(ts, 5, 2), numberAt(ts, 8, 2)];
	const [hours, minutes, seconds] = [numberAt(ts, 11, 2), numberAt(ts, 14, 2), numberAt(ts, 17, 2)];
	const date = Date.UTC(numberAt(ts, 0, 4), month - 1, day);
	const isDate = month >= 1 && month <= 12 && new Date(date).getUTCDate() === day;
	// Date.UTC takes a year below 100 for one of the last century.
	if (!isDate || hours > 23 || minutes > 59 || seconds > 59 || ts.startsWith("00")) return ts;
	return date + ((hours * 60 + minutes) * 60 + seconds) * 1000 + numberAt(ts, 20, 3);
}

/** Digits and what comes between them. To ask `toISOString` for the text takes ten times as long. */
function hasIsoForm(ts: string): boolean {
	for (let i = 0; i < ISO_LENGTH; i++) {
		const code = ts.charCodeAt(i);
		const form = ISO_FORM.charCodeAt(i);
		if (form === DIGIT ? code < DIGIT || code > DIGIT + 9 : code !== form) return false;
	}
	return true;
}

function numberAt(text: string, start: number, digits: number): number {
	let number = 0;
	for (let i = start; i < start + digits; i++) number = number * 10 + text.charCodeAt(i) - DIGIT;
	return number;
}

function unpackOrigin([actor, absorbed, copyOf, ...again]: unknown[]): Origin {
	return {
		actor: actor as Origin["actor"],
		absorbed: absorbed === true,
		copyOf: typeof copyOf === "string" ? copyOf : undefined,
		again: again as number[],
	};
}

/** A number for a blob, bytes for a value of the built-in codec, a pair for one of a custom serializer. */
export function packCell(cell: Cell): unknown {
	if (typeof cell === "number") return cell;
	// A database may have given a Buffer, and two channels the same bytes: the codec would tell both from others.
	const bytes = cell.bytes.length <= SHORT_BYTES ? new Uint8Array(cell.bytes) : viewOf(cell.bytes);
	return cell.type === undefined ? bytes : [cell.type, bytes];
}

function viewOf({ buffer, byteOffset, length }: Uint8Array): Uint8Array {
	return new Uint8Array(buffer, byteOffset, length);
}

export function unpackCell(packed: unknown): Cell {
	if (typeof packed === "number") return packed;
	if (packed instanceof Uint8Array) return { type: undefined, bytes: packed };
	if (Array.isArray(packed) && typeof packed[0] === "string" && packed[1] instanceof Uint8Array)
		return { type: packed[0], bytes: packed[1] };
	throw new CheckpointError("CORRUPT", "A stored checkpoint names a value in a way that is not known.");
}

export function packList(fields: readonly unknown[]): Uint8Array {
	return encoder.encode(fields);
}

export function unpackList(bytes: Uint8Array): unknown[] {
	const value = decoder.decode(bytes);
	if (!Array.isArray(value)) throw new CheckpointError("CORRUPT", "A stored row is not a list.");
	return value;
}

/** The blobs that a manifest names. */
export function namedBlobs({ manifest }: Pick<Head, "manifest">): number[] {
	const ids: number[] = [];
	for (const cell of manifest.values()) if (typeof cell === "number") ids.push(cell);
	return ids;
}

type Versions = Record<string, string | number>;

/** Fresh objects, so that neither side can change the other's. */
export function copyVersions(from: {
	channel_versions?: Readonly<Versions>;
	versions_seen?: Readonly<Record<string, Readonly<Versions>>>;
}): { versions: Versions; seen: Record<string, Versions> } {
	const seen: Record<string, Versions> = {};
	for (const [node, versions] of Object.entries(from.versions_seen ?? {})) setOwn(seen, node, { ...versions });
	return { versions: { ...from.channel_versions }, seen };
}

/** Assigns a key that may be called `__proto__`. */
export function setOwn<T>(object: Record<string, T>, key: string, value: T): void {
	if (key === "__proto__")
		Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
	else object[key] = value;
}

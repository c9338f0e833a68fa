import type { Encoded } from "../codec/codec.ts";
import { UnserializableError } from "../codec/unserializable.ts";
import { CheckpointError } from "../errors.ts";

/** Where a value is: in a blob, or right here. */
export type Cell = number | Encoded;

const encoder = new TextEncoder();
const scratch = new Uint8Array(8192);
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The content of a row of the engine: a JSON text, a zero, which no such text has, and the bytes of the cells one after the
 * other. The text is the fields, and last of them a list of the cells: the number of a blob, `[length]` of bytes, or
 * `[length, type]` of a custom serializer's.
 */
export function packFields(fields: readonly unknown[], cells: readonly Cell[]): Uint8Array {
	const parts = [encode([...fields, cells.map(describe)])];
	for (const cell of cells) if (typeof cell !== "number") parts.push(cell.bytes);
	const packed = new Uint8Array(parts.reduce((size, { length }) => size + length, 0));
	let at = 0;
	for (const part of parts) {
		packed.set(part, at);
		at += part.length;
	}
	return packed;
}

/** What was packed. Throws a CheckpointError with code CORRUPT if the bytes are not a row's. */
export function unpackFields(packed: Uint8Array): { fields: unknown[]; cells: Cell[] } {
	let at = packed.indexOf(0) + 1;
	const fields = parse(packed.subarray(0, Math.max(at - 1, 0)));
	const described = Array.isArray(fields) && fields.pop();
	if (!Array.isArray(described)) throw corrupt("has no list of its values");
	const cells = described.map((cell: unknown): Cell => {
		if (typeof cell === "number") return cell;
		const [length, type] = Array.isArray(cell) ? cell : [];
		if (!(length >= 0 && (type === undefined || typeof type === "string")))
			throw corrupt("names a value in a way that is not known");
		at += length;
		// A copy: what is remembered should not hold on to the row.
		return { type, bytes: new Uint8Array(packed.subarray(at - length, at)) };
	});
	if (at !== packed.length) throw corrupt("has not the length that it should have");
	return { fields, cells };
}

function describe(cell: Cell): number | unknown[] {
	if (typeof cell === "number") return cell;
	return cell.type === undefined ? [cell.bytes.length] : [cell.bytes.length, cell.type];
}

/** The text of a row. Good until the next call: to make memory for it would take as long as to write it. */
function encode(fields: readonly unknown[]): Uint8Array {
	try {
		const text = `${JSON.stringify(fields)}\0`;
		const isShort = text.length * 3 <= scratch.length;
		return isShort ? scratch.subarray(0, encoder.encodeInto(text, scratch).written) : encoder.encode(text);
	} catch (cause) {
		throw new UnserializableError("versions", "", (cause as Error).message, { cause });
	}
}

function parse(text: Uint8Array) {
	try {
		return JSON.parse(decoder.decode(text));
	} catch (cause) {
		throw corrupt("is not readable", { cause });
	}
}

export function corrupt(reason: string, options?: ErrorOptions): CheckpointError {
	return new CheckpointError("CORRUPT", `A stored row ${reason}.`, options);
}

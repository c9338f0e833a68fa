import { CLASS_NAMES } from "./reader.ts";

/** Bytes of the stored format, written by hand: nothing of the encoder is used, so that what it never writes can be made. */
export type Part = readonly number[];

export const nil: Part = [0xc0];
export const empty: Part = [0xd4, 0, 0];

export function text(value: string): Part {
	const bytes = [...Buffer.from(value)];
	return [0xdb, ...uint32(bytes.length), ...bytes];
}

export function bin(...bytes: number[]): Part {
	return [0xc6, ...uint32(bytes.length), ...bytes];
}

export function int(value: number): Part {
	return [0xce, ...uint32(value)];
}

export function float(value: number): Part {
	const bytes = Buffer.alloc(8);
	bytes.writeDoubleBE(value);
	return [0xcb, ...bytes];
}

export function list(...items: Part[]): Part {
	return [0xdd, ...uint32(items.length), ...items.flat()];
}

export function map(...entries: [key: Part | string, value: Part][]): Part {
	const parts = entries.map(([key, value]) => [...(typeof key === "string" ? text(key) : key), ...value]);
	return [0xdf, ...uint32(entries.length), ...parts.flat()];
}

export function tagged(tag: number, ...fields: Part[]): Part {
	return [0xdd, ...uint32(fields.length + 2), ...empty, tag, ...fields.flat()];
}

/** An instance of a class of LangChain, from names of arguments and their values. */
export function instance(name: string, ...args: [key: Part | string, value: Part][]): Part {
	const parts = args.flatMap(([key, value]) => [typeof key === "string" ? text(key) : key, value]);
	return tagged(32 + CLASS_NAMES.indexOf(name), ...parts);
}

export function ext(type: number, ...bytes: number[]): Part {
	return [0xc9, ...uint32(bytes.length), type, ...bytes];
}

export function ref(number: number): Part {
	return tagged(6, int(number));
}

/** One value, whose objects may refer to each other. */
export function value(part: Part): Uint8Array {
	return Uint8Array.from([0x10, ...part]);
}

/** Elements of an array at the top, of which later ones may refer to earlier ones. */
export function elements(...parts: Part[]): Uint8Array {
	return Uint8Array.from([0x11, ...parts.flat()]);
}

export function uint32(number: number): Part {
	return [(number >>> 24) & 0xff, (number >>> 16) & 0xff, (number >>> 8) & 0xff, number & 0xff];
}

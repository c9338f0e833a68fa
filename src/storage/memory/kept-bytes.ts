/**
 * Bytes as they are held in memory: short ones as text with a character for each. An array would take about 200 bytes
 * besides its content, which is more than most rows have.
 */
export type KeptBytes = string | Uint8Array;

/** Beyond this an array is hardly larger than text, and need not be made anew for each reader. */
const MOST_AS_TEXT = 4096;

/** What Buffer has for text of this kind. It works on any array of bytes, and Buffer is not everywhere. */
const { latin1Slice, latin1Write } = (globalThis.Buffer?.prototype ?? {}) as {
	latin1Slice?: (this: Uint8Array, start: number, end: number) => string;
	latin1Write?: (this: Uint8Array, text: string, at: number, length: number) => number;
};

export function keepBytes(bytes: Uint8Array): KeptBytes {
	if (latin1Slice === undefined || latin1Write === undefined || bytes.length > MOST_AS_TEXT) return bytes;
	return latin1Slice.call(bytes, 0, bytes.length);
}

export function readBytes(kept: KeptBytes): Uint8Array {
	if (typeof kept !== "string") return kept;
	const bytes = new Uint8Array(kept.length);
	latin1Write?.call(bytes, kept, 0, kept.length);
	return bytes;
}

/** Beyond this share of their length, changes are not worth their while. */
const MOST_CHANGES = 1 / 4;
/** Changes that are further apart than a character can say are not noted. */
const FURTHEST = 0xff;
const scratch = new Uint8Array(MOST_AS_TEXT);

/**
 * Where and how bytes differ from others of the same length, two characters for each: how far it is from the place before,
 * and what is there instead. Nothing if they differ too much for that.
 */
export function findChanges(text: string, bytes: Uint8Array): string | undefined {
	if (latin1Slice === undefined || text.length !== bytes.length) return undefined;
	const most = 2 * Math.floor(bytes.length * MOST_CHANGES);
	let [length, last] = [0, 0];
	for (let i = 0; i < bytes.length; i++) {
		if (text.charCodeAt(i) === bytes[i]) continue;
		if (length === most || i - last > FURTHEST) return undefined;
		scratch[length++] = i - last;
		scratch[length++] = bytes[i] as number;
		last = i;
	}
	return latin1Slice.call(scratch, 0, length);
}

/** The bytes that differ so from the others. */
export function readChanged(text: string, changes: string): Uint8Array {
	const bytes = readBytes(text);
	applyChanges(bytes, changes);
	return bytes;
}

/** The same as text. */
export function changedText(text: string, changes: string): string {
	latin1Write?.call(scratch, text, 0, text.length);
	applyChanges(scratch, changes);
	return latin1Slice?.call(scratch, 0, text.length) as string;
}

function applyChanges(bytes: Uint8Array, changes: string): void {
	for (let i = 0, at = 0; i < changes.length; i += 2) {
		at += changes.charCodeAt(i);
		bytes[at] = changes.charCodeAt(i + 1);
	}
}

/** Text that was put together holds on to all its parts until somebody looks at its characters: this does. */
export function keepText(text: string): string {
	return Number.isNaN(text.charCodeAt(0)) ? "" : text;
}

export function areSame(a: KeptBytes, b: KeptBytes): boolean {
	if (typeof a === "string" || typeof b === "string") return a === b;
	return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** Whether a piece is in there. May be wrong about what is not. */
export function mayContain(kept: KeptBytes, piece: KeptBytes): boolean {
	if (typeof kept !== "string")
		return globalThis.Buffer === undefined || asBuffer(kept).includes(asBuffer(readBytes(piece)));
	return typeof piece === "string" && kept.includes(piece);
}

export function startsWith(kept: KeptBytes, start: Uint8Array): boolean {
	return start.every((byte, i) => byte === (typeof kept === "string" ? kept.charCodeAt(i) : kept[i]));
}

function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
	return Buffer.from(buffer, byteOffset, length);
}

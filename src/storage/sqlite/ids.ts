const UUID_LENGTH = 36;
const HYPHENS: readonly number[] = [8, 13, 18, 23];
const HYPHEN = "-".charCodeAt(0);

/** An id as it is stored where the order of ids does not matter. */
export type PackedId = Buffer | string;

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Whether the id is packed by {@link packId}. */
export function isPackable(id: string): boolean {
	return UUID.test(id);
}

/** A UUID in its usual spelling as 16 bytes, any other id as itself. */
export function packId(id: string): PackedId {
	if (id.length !== UUID_LENGTH) return id;
	const bytes = Buffer.allocUnsafe(16);
	let at = 0;
	// A pattern and Buffer's own hex take several times as long, and every row has two ids or three.
	for (let i = 0; i < UUID_LENGTH; i += 2) {
		if (HYPHENS.includes(i) && id.charCodeAt(i++) !== HYPHEN) return id;
		const [high, low] = [hexDigit(id.charCodeAt(i)), hexDigit(id.charCodeAt(i + 1))];
		if (high < 0 || low < 0) return id;
		bytes[at++] = (high << 4) | low;
	}
	return bytes;
}

/** The value of a lower-case digit, or -1. */
function hexDigit(code: number): number {
	if (code >= 0x30 && code <= 0x39) return code - 0x30;
	return code >= 0x61 && code <= 0x66 ? code - 0x61 + 10 : -1;
}

export function unpackId(packed: PackedId): string {
	if (typeof packed === "string") return packed;
	const hex = packed.toString("hex");
	return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** What makes checkpoints, as LangGraph calls it: stored as its place in here, which takes a byte or none. */
const SOURCES = ["input", "loop", "update", "fork"];
/** A column of type ANY would keep other numbers as floats. */
const PLACES = new Map<string | undefined, bigint>(SOURCES.map((source, at) => [source, BigInt(at)]));

export type PackedSource = number | string;

export function packSource(source: string | undefined): bigint | string | null {
	return PLACES.get(source) ?? source ?? null;
}

export function unpackSource(packed: PackedSource | null): string | undefined {
	return typeof packed === "number" ? SOURCES[packed] : (packed ?? undefined);
}

/** An id that may be missing. */
export function packOptional(id: string | undefined): PackedId | null {
	return id === undefined ? null : packId(id);
}

export function unpackOptional(packed: PackedId | null): string | undefined {
	return packed === null ? undefined : unpackId(packed);
}

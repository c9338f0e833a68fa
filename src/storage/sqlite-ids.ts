const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** An id as it is stored where the order of ids does not matter. */
export type PackedId = Buffer | string;

export function isPackable(id: string): boolean {
	return id.length === 36 && UUID.test(id);
}

/** A UUID in its usual spelling as 16 bytes, any other id as itself. */
export function packId(id: string): PackedId {
	if (!isPackable(id)) return id;
	return Buffer.from(id.replaceAll("-", ""), "hex");
}

export function unpackId(packed: PackedId): string {
	if (typeof packed === "string") return packed;
	const hex = packed.toString("hex");
	return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** An id that may be missing. */
export function packOptional(id: string | undefined): PackedId | null {
	return id === undefined ? null : packId(id);
}

export function unpackOptional(packed: PackedId | null): string | undefined {
	return packed === null ? undefined : unpackId(packed);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A UUID in its usual spelling as 16 bytes, any other id as itself: where the order of ids does not matter. */
export function packId(id: string): Buffer | string {
	if (id.length !== 36 || !UUID.test(id)) return id;
	return Buffer.from(id.replaceAll("-", ""), "hex");
}

export function unpackId(packed: Buffer | string): string {
	if (typeof packed === "string") return packed;
	const hex = packed.toString("hex");
	return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

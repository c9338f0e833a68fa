/**
 * Text as a column of type text can hold it. PostgreSQL knows no U+0000, so that becomes U+0001 U+0001 and U+0001
 * becomes U+0001 U+0002: different texts stay different, and their order stays the same.
 */
export function toText(value: string): string {
	if (!value.includes("\u0001") && !value.includes("\0")) return value;
	return value.replaceAll("\u0001", "\u0001\u0002").replaceAll("\0", "\u0001\u0001");
}

export function fromText(stored: string): string {
	if (!stored.includes("\u0001")) return stored;
	return stored.replaceAll("\u0001\u0001", "\0").replaceAll("\u0001\u0002", "\u0001");
}

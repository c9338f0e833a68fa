import { createHash } from "node:crypto";
import { CheckpointError, quote } from "../../errors.ts";

/** 32 bytes, as they are or in hexadecimal or Base64. */
export type EncryptionKey = Uint8Array | string;

/** One key, or several by name of which one is used for what is stored from now on. */
export type EncryptionOptions = (
	| { readonly key: EncryptionKey }
	| { readonly keys: Readonly<Record<string, EncryptionKey>>; readonly current: string }
) & {
	/**
	 * Also takes rows that were stored without encryption, for as long as it is given: whoever can write to the database
	 * can add such rows. Leave it out again once `rotateKeys` has been through.
	 */
	readonly migrate?: boolean;
};

export interface NamedKey {
	readonly name: string;
	readonly bytes: Uint8Array;
	/** Tells a wrong key from damage, and gives nothing away. */
	readonly fingerprint: Uint8Array;
}

const KEY_BYTES = 32;
export const FINGERPRINT_BYTES = 4;
/** The name takes one byte of length in the envelope. */
const LONGEST_NAME = 255;

/** The keys that rows may be encrypted with, the current one first. */
export function readKeys(options: EncryptionOptions): NamedKey[] {
	const { keys, current } = "key" in options ? { keys: { "": options.key }, current: "" } : options;
	const all = Object.entries(keys ?? {}).map(([name, key]) => toNamedKey(name, key));
	const first = all.find(({ name }) => name === current);
	if (first !== undefined) return [first, ...all.filter((key) => key !== first)];
	const names = all.map(({ name }) => quote(name)).join(", ") || "the keys";
	throw new CheckpointError(
		"INVALID_OPTION",
		`\`encryption\` needs { key } or { keys, current }, with \`current\` one of ${names}.`,
	);
}

function toNamedKey(name: string, key: EncryptionKey): NamedKey {
	const bytes = typeof key === "string" ? parseKey(key.trim()) : key;
	if (!(bytes instanceof Uint8Array) || bytes.length !== KEY_BYTES)
		throw new CheckpointError(
			"INVALID_OPTION",
			`Encryption key ${quote(name)} must be ${KEY_BYTES} bytes, as a Uint8Array or in hexadecimal or Base64: make one with crypto.randomBytes(${KEY_BYTES}).`,
		);
	if (Buffer.byteLength(name) > LONGEST_NAME || !name.isWellFormed())
		throw new CheckpointError(
			"INVALID_OPTION",
			`The name of encryption key ${quote(name)} is longer than ${LONGEST_NAME} bytes, or not well-formed.`,
		);
	const hash = createHash("sha256").update("langgraph-checkpoint-delta key fingerprint").update(bytes).digest();
	return { name, bytes: new Uint8Array(bytes), fingerprint: hash.subarray(0, FINGERPRINT_BYTES) };
}

/** Node itself skips what is not Base64, and would make some key of any passphrase. */
function parseKey(text: string): Uint8Array | undefined {
	if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, "hex");
	return /^[\w+/-]{43}=?$/.test(text) ? Buffer.from(text, "base64") : undefined;
}

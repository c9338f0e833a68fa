import { createHash } from "node:crypto";
import { CheckpointError, quote } from "../errors.ts";

/** 32 bytes, as they are or in hexadecimal or Base64. */
export type EncryptionKey = Uint8Array | string;

/** One key, or several by name of which one is used for what is stored from now on. */
export type EncryptionOptions = (
	| { readonly key: EncryptionKey }
	| { readonly keys: Readonly<Record<string, EncryptionKey>>; readonly current: string }
) & {
	/** Also reads rows that were stored without encryption, until `rotateKeys` has been through. */
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

/** The keys that rows may be encrypted with. */
export class Keyring {
	readonly current: NamedKey;
	readonly #byName = new Map<string, NamedKey>();

	constructor(options: EncryptionOptions) {
		const keys = "key" in options ? { "": options.key } : options.keys;
		for (const [name, key] of Object.entries(keys ?? {})) this.#byName.set(name, toNamedKey(name, key));
		const current = "key" in options ? "" : options.current;
		const found = this.#byName.get(current);
		if (found === undefined)
			throw new CheckpointError(
				"INVALID_OPTION",
				`\`encryption\` needs { key } or { keys, current }, with \`current\` one of ${[...this.#byName.keys()].map(quote).join(", ") || "the keys"}.`,
			);
		this.current = found;
	}

	/** The key of that name, if its fingerprint is right. */
	mustGet(name: string, fingerprint: Uint8Array): NamedKey {
		const key = this.#byName.get(name);
		if (key === undefined)
			throw new CheckpointError(
				"WRONG_KEY",
				`A row is encrypted with key ${quote(name)}, which was not given: add it to \`encryption.keys\`.`,
			);
		if (Buffer.compare(key.fingerprint, fingerprint) !== 0)
			throw new CheckpointError(
				"WRONG_KEY",
				`A row is encrypted with another key than the one given as ${quote(name)}: give the right one.`,
			);
		return key;
	}
}

function toNamedKey(name: string, key: EncryptionKey): NamedKey {
	const bytes = typeof key === "string" ? parseKey(key) : key;
	if (!(bytes instanceof Uint8Array) || bytes.length !== KEY_BYTES)
		throw new CheckpointError(
			"INVALID_OPTION",
			`Encryption key ${quote(name)} must be ${KEY_BYTES} bytes, as a Uint8Array or in hexadecimal or Base64: make one with crypto.randomBytes(${KEY_BYTES}).`,
		);
	const name_ = Buffer.byteLength(name) <= LONGEST_NAME ? name : undefined;
	if (name_ === undefined)
		throw new CheckpointError(
			"INVALID_OPTION",
			`The name of encryption key ${quote(name)} is longer than ${LONGEST_NAME} bytes.`,
		);
	const hash = createHash("sha256").update("langgraph-checkpoint-delta key fingerprint").update(bytes).digest();
	return { name, bytes: new Uint8Array(bytes), fingerprint: hash.subarray(0, FINGERPRINT_BYTES) };
}

function parseKey(text: string): Uint8Array {
	return Buffer.from(text, /^[0-9a-f]{64}$/i.test(text) ? "hex" : "base64");
}

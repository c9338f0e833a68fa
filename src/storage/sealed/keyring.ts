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

/** The keys that rows may be encrypted with. */
export class Keyring {
	readonly current: NamedKey;
	readonly #byName = new Map<string, NamedKey>();

	constructor(options: EncryptionOptions) {
		checkForm(options);
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

	get all(): NamedKey[] {
		return [...this.#byName.values()];
	}

	/** The key with that fingerprint, whatever its name is now: a key that had no name gets one when a second is added. */
	get(name: string, fingerprint: Uint8Array): NamedKey | undefined {
		const named = this.#byName.get(name);
		const keys = named === undefined ? this.all : [named, ...this.all];
		return keys.find((key) => Buffer.compare(key.fingerprint, fingerprint) === 0);
	}

	/** The error for a row whose key is not there. */
	refuse(name: string, row: string): CheckpointError {
		const advice = this.#byName.has(name)
			? `with another key than the one given as ${quote(name)}: give the right one`
			: `with key ${quote(name)}, which was not given: add it to \`encryption.keys\``;
		return new CheckpointError("WRONG_KEY", `Row ${row} is encrypted ${advice}.`);
	}
}

/** A misspelt or superfluous option would otherwise be ignored in silence. */
function checkForm(options: EncryptionOptions): void {
	if (typeof options !== "object" || options === null)
		throw new CheckpointError("INVALID_OPTION", `\`encryption\` must be an object, got ${quote(options)}.`);
	const known = "key" in options ? ["key", "migrate"] : ["keys", "current", "migrate"];
	for (const name of Object.keys(options))
		if (!known.includes(name))
			throw new CheckpointError(
				"INVALID_OPTION",
				`\`encryption\` has no option ${quote(name)} beside ${known.join(", ")}.`,
			);
	if (options.migrate !== undefined && typeof options.migrate !== "boolean")
		throw new CheckpointError(
			"INVALID_OPTION",
			`\`encryption.migrate\` must be true or false, got ${quote(options.migrate)}.`,
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

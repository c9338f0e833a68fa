import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { crc32, deflateRawSync, inflateRawSync } from "node:zlib";
import { CheckpointError } from "../errors.ts";
import { type EncryptionOptions, FINGERPRINT_BYTES, Keyring } from "./keyring.ts";

/** Bits of the first byte of an envelope. */
const DEFLATED = 1;
const ENCRYPTED = 2;
const KNOWN_FLAGS = DEFLATED | ENCRYPTED;

const CHECKSUM_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";

/** Below this size compression gains little and costs about as much as storing the row. */
const COMPRESS_FROM = 2048;
/** A compressed value must be at least this much smaller to be worth inflating at every read. */
const WORTH_IT = 0.8;
/** Deflate makes at most 1,032 bytes of one: what claims to be more is not read. */
const MOST_INFLATION = 1032;

/**
 * What a row is, in words of its own. Bound to its thread for encryption; without it rows are copied between threads as
 * they are, so that the thread can't be part of what is checked.
 */
export type Identity = (isBound: boolean) => string;

export interface SealOptions {
	readonly encryption?: EncryptionOptions | undefined;
	/** Whether large values are compressed. */
	readonly compression: boolean;
}

/**
 * Puts bytes into an envelope that shows damage, and opens it.
 *
 * `flags, checksum of identity and content, content`, or for encrypted ones
 * `flags, length of the key's name, name, fingerprint of the key, nonce, content, tag`. The identity of the row is part
 * of what is checked, so that an envelope opens only in the row that it was made for.
 */
export class Sealer {
	readonly #keys: Keyring | undefined;
	readonly #acceptsPlain: boolean;
	readonly #compresses: boolean;

	constructor({ encryption, compression }: SealOptions) {
		this.#keys = encryption && new Keyring(encryption);
		this.#acceptsPlain = encryption === undefined || encryption.migrate === true;
		this.#compresses = compression;
	}

	get encrypts(): boolean {
		return this.#keys !== undefined;
	}

	seal(bytes: Uint8Array, identity: Identity): Uint8Array {
		const deflated =
			this.#compresses && bytes.length >= COMPRESS_FROM ? deflateRawSync(bytes, { level: 1 }) : undefined;
		const isSmaller = deflated !== undefined && deflated.length <= bytes.length * WORTH_IT;
		const content = isSmaller ? deflated : bytes;
		const flags = isSmaller ? DEFLATED : 0;
		return this.#keys === undefined
			? check(flags, content, identity(false))
			: this.#encrypt(this.#keys, flags, content, identity);
	}

	/** Throws a CheckpointError with code CORRUPT or WRONG_KEY if the envelope is not whole and in its place. */
	open(envelope: Uint8Array, identity: Identity): Uint8Array {
		const flags = envelope[0] ?? -1;
		if ((flags & ~KNOWN_FLAGS) !== 0) throw damaged(identity);
		const content = flags & ENCRYPTED ? this.#decrypt(envelope, identity) : this.#openPlain(envelope, identity);
		if ((flags & DEFLATED) === 0) return content;
		try {
			return inflateRawSync(content, { maxOutputLength: content.length * MOST_INFLATION + 64 });
		} catch (cause) {
			throw damaged(identity, cause);
		}
	}

	/** Whether a row should be sealed again: in clear, or under an older key. */
	isOutdated(envelope: Uint8Array): boolean {
		if (this.#keys === undefined) return false;
		if (((envelope[0] ?? 0) & ENCRYPTED) === 0) return true;
		const { name, fingerprint } = readKeyId(envelope, () => "");
		const { current } = this.#keys;
		return name !== current.name || Buffer.compare(fingerprint, current.fingerprint) !== 0;
	}

	#openPlain(envelope: Uint8Array, identity: Identity): Uint8Array {
		if (!this.#acceptsPlain)
			throw new CheckpointError(
				"CORRUPT",
				`Row ${identity(true)} is not encrypted, but encryption is on: pass \`migrate: true\` if that is expected.`,
			);
		const content = envelope.subarray(1 + CHECKSUM_BYTES);
		if (envelope.length < 1 + CHECKSUM_BYTES) throw damaged(identity);
		const sum = checksum(envelope[0] as number, content, identity(false));
		if (Buffer.compare(sum, envelope.subarray(1, 1 + CHECKSUM_BYTES)) !== 0) throw damaged(identity);
		return content;
	}

	#encrypt({ current }: Keyring, flags: number, content: Uint8Array, identity: Identity): Uint8Array {
		const nonce = randomBytes(NONCE_BYTES);
		const name = Buffer.from(current.name);
		const header = Buffer.concat([Buffer.of(flags | ENCRYPTED, name.length), name, current.fingerprint, nonce]);
		const cipher = createCipheriv(CIPHER, current.bytes, nonce);
		cipher.setAAD(Buffer.concat([header, Buffer.from(identity(true))]));
		return Buffer.concat([header, cipher.update(content), cipher.final(), cipher.getAuthTag()]);
	}

	#decrypt(envelope: Uint8Array, identity: Identity): Uint8Array {
		if (this.#keys === undefined)
			throw new CheckpointError("WRONG_KEY", `Row ${identity(true)} is encrypted: pass its key in \`encryption\`.`);
		const { name, fingerprint, end } = readKeyId(envelope, identity);
		const key = this.#keys.mustGet(name, fingerprint);
		const start = end + NONCE_BYTES;
		if (envelope.length < start + TAG_BYTES) throw damaged(identity);
		const decipher = createDecipheriv(CIPHER, key.bytes, envelope.subarray(end, start), { authTagLength: TAG_BYTES });
		decipher.setAAD(Buffer.concat([envelope.subarray(0, start), Buffer.from(identity(true))]));
		decipher.setAuthTag(envelope.subarray(-TAG_BYTES));
		try {
			return Buffer.concat([decipher.update(envelope.subarray(start, -TAG_BYTES)), decipher.final()]);
		} catch (cause) {
			throw damaged(identity, cause);
		}
	}
}

function readKeyId(envelope: Uint8Array, identity: Identity): { name: string; fingerprint: Uint8Array; end: number } {
	const length = envelope[1] ?? 0;
	const end = 2 + length + FINGERPRINT_BYTES;
	if (envelope.length < end) throw damaged(identity);
	const name = Buffer.from(envelope.subarray(2, 2 + length)).toString();
	return { name, fingerprint: envelope.subarray(2 + length, end), end };
}

function check(flags: number, content: Uint8Array, identity: string): Uint8Array {
	const envelope = new Uint8Array(1 + CHECKSUM_BYTES + content.length);
	envelope[0] = flags;
	envelope.set(checksum(flags, content, identity), 1);
	envelope.set(content, 1 + CHECKSUM_BYTES);
	return envelope;
}

function checksum(flags: number, content: Uint8Array, identity: string): Uint8Array {
	const sum = Buffer.alloc(CHECKSUM_BYTES);
	sum.writeUInt32BE(crc32(content, crc32(identity, flags)) >>> 0);
	return sum;
}

function damaged(identity: Identity, cause?: unknown): CheckpointError {
	return new CheckpointError("CORRUPT", `Row ${identity(true)} is damaged, or is not where it was put.`, { cause });
}

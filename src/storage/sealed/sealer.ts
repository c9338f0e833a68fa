import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { crc32, deflateRawSync, inflateRawSync } from "node:zlib";
import { CheckpointError, quote } from "../../errors.ts";
import { type EncryptionOptions, FINGERPRINT_BYTES, Keyring, type NamedKey } from "./keyring.ts";

/** Bits of the first byte of an envelope. */
const DEFLATED = 1;
const ENCRYPTED = 2;
const KNOWN_FLAGS = DEFLATED | ENCRYPTED;

const CHECKSUM_BYTES = 4;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";

/**
 * Values from this size are compressed: text of a kilobyte shrinks by half in 20 µs, and is read again in 8. The rows of
 * a chat then take 68% of their bytes. From two kilobytes it would be 84%, as most patches are smaller; from half a
 * kilobyte 63%, for nearly twice as many patches to inflate. See `test/bench/compression.ts`.
 */
const COMPRESS_FROM = 1024;
/** Higher levels take twice the time for 2% less. */
const LEVEL = 1;
/** What shrinks less is stored as it is: Base64 leaves 75%, and took 20 ms a megabyte to write and 3 to read. */
const WORTH_IT = 0.7;
/** Of values from this size a few pieces are tried first: a picture is seen to be one at little cost. */
const TRY_FROM = 64 * 1024;
const PIECES = 4;
const PIECE_BYTES = 2048;
/**
 * What a compressed value may become when it is read: as much as this many times its size, or this many bytes. Few
 * values of any size shrink more; those are not compressed, so that a forged row can't fill the memory.
 */
const MOST_INFLATION = 64;
const ALWAYS_INFLATED = 1024 * 1024;

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
		if (typeof compression !== "boolean")
			throw new CheckpointError("INVALID_OPTION", `\`compression\` must be true or false, got ${quote(compression)}.`);
		this.#keys = encryption === undefined ? undefined : new Keyring(encryption);
		this.#acceptsPlain = encryption === undefined || encryption.migrate === true;
		this.#compresses = compression;
	}

	get encrypts(): boolean {
		return this.#keys !== undefined;
	}

	/** @param compressFrom size from which it is worth while to compress this kind of row */
	seal(bytes: Uint8Array, identity: Identity, compressFrom = COMPRESS_FROM): Uint8Array {
		const deflated = this.#compresses && bytes.length >= compressFrom ? deflate(bytes) : undefined;
		return deflated ? this.#wrap(DEFLATED, deflated, identity) : this.#wrap(0, bytes, identity);
	}

	/** Throws a CheckpointError with code CORRUPT or WRONG_KEY if the envelope is not whole and in its place. */
	open(envelope: Uint8Array, identity: Identity): Uint8Array {
		const flags = envelope instanceof Uint8Array ? (envelope[0] ?? -1) : -1;
		if ((flags & ~KNOWN_FLAGS) !== 0) throw damaged(identity);
		const content = flags & ENCRYPTED ? this.#decrypt(envelope, identity) : this.#openPlain(envelope, identity);
		if ((flags & DEFLATED) === 0) return content;
		try {
			return inflateRawSync(content, { maxOutputLength: mostInflated(content) });
		} catch (cause) {
			throw damaged(identity, cause);
		}
	}

	/** Throws a CheckpointError with code WRONG_KEY if the envelope is not sealed for the keys of this. Damage is let pass. */
	checkKey(envelope: Uint8Array, identity: Identity): void {
		if (!this.#acceptsPlain && ((envelope[0] ?? 0) & ENCRYPTED) === 0 && isPlain(envelope, identity))
			throw new CheckpointError("WRONG_KEY", unencrypted(identity));
		try {
			this.open(envelope, identity);
		} catch (error) {
			if (error instanceof CheckpointError && error.code === "WRONG_KEY") throw error;
		}
	}

	/** Whether a row should be sealed again: in clear, or under an older key. */
	isOutdated(envelope: Uint8Array, identity: Identity): boolean {
		if (this.#keys === undefined) return false;
		if (((envelope[0] ?? 0) & ENCRYPTED) === 0) return true;
		const { name, fingerprint } = readKeyId(envelope, identity);
		const { current } = this.#keys;
		return name !== current.name || Buffer.compare(fingerprint, current.fingerprint) !== 0;
	}

	#wrap(flags: number, content: Uint8Array, identity: Identity): Uint8Array {
		return this.#keys === undefined
			? check(flags, content, identity(false))
			: this.#encrypt(this.#keys, flags, content, identity);
	}

	#openPlain(envelope: Uint8Array, identity: Identity): Uint8Array {
		if (!this.#acceptsPlain) throw new CheckpointError("CORRUPT", unencrypted(identity));
		const content = envelope.subarray(1 + CHECKSUM_BYTES);
		if (envelope.length < 1 + CHECKSUM_BYTES) throw damaged(identity);
		if (checksum(envelope[0] as number, content, identity(false)) !== readUint32(envelope, 1)) throw damaged(identity);
		return content;
	}

	#encrypt({ current }: Keyring, flags: number, content: Uint8Array, identity: Identity): Uint8Array {
		const nonce = randomBytes(NONCE_BYTES);
		const header = Buffer.concat([packKeyId(flags | ENCRYPTED, current), nonce]);
		const cipher = createCipheriv(CIPHER, current.bytes, nonce);
		cipher.setAAD(Buffer.concat([header, Buffer.from(identity(true))]));
		return Buffer.concat([header, cipher.update(content), cipher.final(), cipher.getAuthTag()]);
	}

	#decrypt(envelope: Uint8Array, identity: Identity): Uint8Array {
		if (this.#keys === undefined) {
			if (isPlain(envelope, identity)) throw damaged(identity);
			throw missingKey(identity);
		}
		const { name, fingerprint, end } = readKeyId(envelope, identity);
		const key = this.#keys.get(name, fingerprint);
		// It may be the name of the key that is damaged.
		if (key === undefined && this.#keys.all.some((key) => isUnder(key, envelope, identity))) throw damaged(identity);
		if (key === undefined) throw this.#keys.refuse(name, identity(true));
		try {
			return decrypt(key, envelope.subarray(0, end), envelope, identity);
		} catch (cause) {
			throw damaged(identity, cause);
		}
	}
}

/** @param keyId what the envelope begins with, up to the nonce */
function decrypt({ bytes }: NamedKey, keyId: Uint8Array, envelope: Uint8Array, identity: Identity): Uint8Array {
	const start = keyId.length + NONCE_BYTES;
	if (envelope.length < start + TAG_BYTES) throw new RangeError("The envelope is too short");
	const nonce = envelope.subarray(keyId.length, start);
	const decipher = createDecipheriv(CIPHER, bytes, nonce, { authTagLength: TAG_BYTES });
	decipher.setAAD(Buffer.concat([keyId, nonce, Buffer.from(identity(true))]));
	decipher.setAuthTag(envelope.subarray(-TAG_BYTES));
	return Buffer.concat([decipher.update(envelope.subarray(start, -TAG_BYTES)), decipher.final()]);
}

/** Whether an envelope was made with this key, if one of the two things that it says of its key is wrong. */
function isUnder(key: NamedKey, envelope: Uint8Array, identity: Identity): boolean {
	const { name } = readKeyId(envelope, identity);
	return [name, key.name].some((name) => {
		try {
			decrypt(key, packKeyId(envelope[0] as number, { ...key, name }), envelope, identity);
			return true;
		} catch {
			return false;
		}
	});
}

function unencrypted(identity: Identity): string {
	return `Row ${identity(true)} is not encrypted, but encryption is on: pass \`migrate: true\` if that is expected.`;
}

function missingKey(identity: Identity): CheckpointError {
	return new CheckpointError("WRONG_KEY", `Row ${identity(true)} is encrypted: pass its key in \`encryption\`.`);
}

/** Whether an envelope was not encrypted, whatever it says itself. */
function isPlain(envelope: Uint8Array, identity: Identity): boolean {
	if (envelope.length < 1 + CHECKSUM_BYTES) return false;
	const flags = (envelope[0] as number) & ~ENCRYPTED;
	return checksum(flags, envelope.subarray(1 + CHECKSUM_BYTES), identity(false)) === readUint32(envelope, 1);
}

function packKeyId(flags: number, { name, fingerprint }: NamedKey): Uint8Array {
	const bytes = Buffer.from(name);
	return Buffer.concat([Buffer.of(flags, bytes.length), bytes, fingerprint]);
}

/** Answers nothing if it does not pay. */
function deflate(bytes: Uint8Array): Uint8Array | undefined {
	if (bytes.length >= TRY_FROM && tryDeflate(takePieces(bytes)) === undefined) return undefined;
	const deflated = tryDeflate(bytes);
	return deflated !== undefined && bytes.length <= mostInflated(deflated) ? deflated : undefined;
}

function tryDeflate(bytes: Uint8Array): Uint8Array | undefined {
	const deflated = deflateRawSync(bytes, { level: LEVEL });
	return deflated.length <= bytes.length * WORTH_IT ? deflated : undefined;
}

function takePieces(bytes: Uint8Array): Uint8Array {
	const distance = Math.floor(bytes.length / PIECES);
	const starts = Array.from({ length: PIECES }, (_, i) => i * distance);
	return Buffer.concat(starts.map((start) => bytes.subarray(start, start + PIECE_BYTES)));
}

function mostInflated(deflated: Uint8Array): number {
	return Math.max(deflated.length * MOST_INFLATION, ALWAYS_INFLATED);
}

function readKeyId(envelope: Uint8Array, identity: Identity): { name: string; fingerprint: Uint8Array; end: number } {
	const length = envelope[1] ?? 0;
	const end = 2 + length + FINGERPRINT_BYTES;
	if (envelope.length < end) throw damaged(identity);
	const name = Buffer.from(envelope.subarray(2, 2 + length)).toString();
	return { name, fingerprint: envelope.subarray(2 + length, end), end };
}

function check(flags: number, content: Uint8Array, identity: string): Uint8Array {
	const envelope = Buffer.allocUnsafe(1 + CHECKSUM_BYTES + content.length);
	envelope[0] = flags;
	envelope.writeUInt32BE(checksum(flags, content, identity), 1);
	envelope.set(content, 1 + CHECKSUM_BYTES);
	return envelope;
}

function checksum(flags: number, content: Uint8Array, identity: string): number {
	const start = crc32(identity, flags);
	// Given no bytes, the crc32 of Node may forget where it was to start.
	return content.length === 0 ? start : crc32(content, start);
}

/** Big end first. */
function readUint32(bytes: Uint8Array, at: number): number {
	return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(at);
}

function damaged(identity: Identity, cause?: unknown): CheckpointError {
	return new CheckpointError("CORRUPT", `Row ${identity(true)} is damaged, or is not where it was put.`, { cause });
}

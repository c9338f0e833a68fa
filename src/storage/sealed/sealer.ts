import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { crc32, deflateRawSync, inflateRawSync } from "node:zlib";
import { CheckpointError, isCorrupt, quote } from "../../errors.ts";
import { type EncryptionOptions, FINGERPRINT_BYTES, type NamedKey, readKeys } from "./keyring.ts";

/** Bits of the first byte of an envelope. */
const DEFLATED = 1;
const ENCRYPTED = 2;

/** Flags and checksum. */
const PLAIN_HEADER_BYTES = 5;
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

/**
 * Puts bytes into an envelope that shows damage, and opens it.
 *
 * `flags, checksum of identity and content, content`, or for encrypted ones
 * `flags, length of the key's name, name, fingerprint of the key, nonce, content, tag`. The identity of the row is part
 * of what is checked, so that an envelope opens only in the row that it was made for.
 */
export class Sealer {
	/** The current one first; none if rows are not encrypted. */
	readonly #keys: readonly NamedKey[];
	readonly #acceptsPlain: boolean;
	readonly #compresses: boolean;

	constructor(options: { encryption?: EncryptionOptions | undefined; compression: boolean }) {
		const { encryption, compression } = options;
		this.#keys = encryption === undefined ? [] : readKeys(encryption);
		this.#acceptsPlain = encryption === undefined || encryption.migrate === true;
		this.#compresses = compression;
	}

	get encrypts(): boolean {
		return this.#keys.length > 0;
	}

	/** @param compressFrom size from which it is worth while to compress this kind of row */
	seal(bytes: Uint8Array, identity: Identity, compressFrom = COMPRESS_FROM): Uint8Array {
		const deflated = this.#compresses && bytes.length >= compressFrom ? deflate(bytes) : undefined;
		const flags = deflated === undefined ? 0 : DEFLATED;
		const content = deflated ?? bytes;
		const key = this.#keys[0];
		return key ? encrypt(key, flags, content, identity(true)) : addChecksum(flags, content, identity(false));
	}

	/** Throws a CheckpointError with code CORRUPT or WRONG_KEY if the envelope is not whole and in its place. */
	open(envelope: Uint8Array, identity: Identity): Uint8Array {
		const flags = envelope instanceof Uint8Array ? (envelope[0] ?? -1) : -1;
		if ((flags & ~(DEFLATED | ENCRYPTED)) !== 0) throw damaged(identity);
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
		if (!this.#acceptsPlain && isPlain(envelope, identity))
			throw new CheckpointError("WRONG_KEY", unencrypted(identity));
		try {
			this.open(envelope, identity);
		} catch (error) {
			if (!isCorrupt(error)) throw error;
		}
	}

	/** Seals again what is in clear, or under an older key. Returns nothing if it is under the current key. */
	sealAgain(envelope: Uint8Array, identity: Identity): Uint8Array | undefined {
		const current = packKeyId(envelope[0] as number, this.#keys[0] as NamedKey);
		if (Buffer.compare(current, envelope.subarray(0, current.length)) === 0) return undefined;
		return this.seal(this.open(envelope, identity), identity);
	}

	#openPlain(envelope: Uint8Array, identity: Identity): Uint8Array {
		if (!this.#acceptsPlain) throw new CheckpointError("CORRUPT", unencrypted(identity));
		if (!isPlain(envelope, identity)) throw damaged(identity);
		return envelope.subarray(PLAIN_HEADER_BYTES);
	}

	#decrypt(envelope: Uint8Array, identity: Identity): Uint8Array {
		const nameEnd = 2 + (envelope[1] ?? 0);
		const name = Buffer.from(envelope.subarray(2, nameEnd)).toString();
		const keyId = envelope.subarray(0, nameEnd + FINGERPRINT_BYTES);
		// Whatever its name is now: a key that had no name gets one when a second is added.
		const key = this.#keys.find(({ fingerprint }) => Buffer.compare(fingerprint, keyId.subarray(nameEnd)) === 0);
		const content = key && decrypt(key, keyId, envelope, identity);
		if (content !== undefined) return content;
		const isCut = keyId.length < nameEnd + FINGERPRINT_BYTES;
		if (isCut || key !== undefined || isPlain(envelope, identity) || this.#isOurs(name, envelope, identity))
			throw damaged(identity);
		const advice = this.#keys.some((key) => key.name === name)
			? `with another key than the one given as ${quote(name)}: give the right one`
			: `with ${name === "" ? "a key" : `key ${quote(name)}`}, which was not given: pass it in \`encryption\``;
		throw new CheckpointError("WRONG_KEY", `Row ${identity(true)} is encrypted ${advice}.`);
	}

	/** Whether an envelope was made with one of the keys, though one of the two things that it says of its key is wrong. */
	#isOurs(name: string, envelope: Uint8Array, identity: Identity): boolean {
		const keyIds = this.#keys.flatMap((key) => [key, { ...key, name }]);
		return keyIds.some((key) => decrypt(key, packKeyId(envelope[0] as number, key), envelope, identity) !== undefined);
	}
}

function encrypt(key: NamedKey, flags: number, content: Uint8Array, identity: string): Uint8Array {
	const nonce = randomBytes(NONCE_BYTES);
	const header = Buffer.concat([packKeyId(flags, key), nonce]);
	const cipher = createCipheriv(CIPHER, key.bytes, nonce);
	cipher.setAAD(Buffer.concat([header, Buffer.from(identity)]));
	return Buffer.concat([header, cipher.update(content), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Returns nothing if the envelope is not whole, in its place and under this key.
 *
 * @param keyId what the envelope begins with, up to the nonce
 */
function decrypt(key: NamedKey, keyId: Uint8Array, envelope: Uint8Array, identity: Identity): Uint8Array | undefined {
	const start = keyId.length + NONCE_BYTES;
	if (envelope.length < start + TAG_BYTES) return undefined;
	const nonce = envelope.subarray(keyId.length, start);
	const decipher = createDecipheriv(CIPHER, key.bytes, nonce, { authTagLength: TAG_BYTES });
	decipher.setAAD(Buffer.concat([keyId, nonce, Buffer.from(identity(true))]));
	decipher.setAuthTag(envelope.subarray(-TAG_BYTES));
	const content = decipher.update(envelope.subarray(start, -TAG_BYTES));
	try {
		return Buffer.concat([content, decipher.final()]);
	} catch {
		return undefined;
	}
}

/** What an envelope under a key begins with. */
function packKeyId(flags: number, { name, fingerprint }: NamedKey): Uint8Array {
	const bytes = Buffer.from(name);
	return Buffer.concat([Buffer.of(flags | ENCRYPTED, bytes.length), bytes, fingerprint]);
}

function addChecksum(flags: number, content: Uint8Array, identity: string): Uint8Array {
	const envelope = Buffer.allocUnsafe(PLAIN_HEADER_BYTES + content.length);
	envelope[0] = flags;
	envelope.writeUInt32BE(checksum(flags, content, identity), 1);
	envelope.set(content, PLAIN_HEADER_BYTES);
	return envelope;
}

/** Whether an envelope is whole, in its place and not encrypted, whatever it says itself of that. */
function isPlain(envelope: Uint8Array, identity: Identity): boolean {
	if (envelope.length < PLAIN_HEADER_BYTES) return false;
	const flags = (envelope[0] as number) & ~ENCRYPTED;
	const expected = new DataView(envelope.buffer, envelope.byteOffset).getUint32(1);
	return checksum(flags, envelope.subarray(PLAIN_HEADER_BYTES), identity(false)) === expected;
}

function checksum(flags: number, content: Uint8Array, identity: string): number {
	const start = crc32(identity, flags);
	// Given no bytes, the crc32 of Node may forget where it was to start.
	return content.length === 0 ? start : crc32(content, start);
}

function unencrypted(identity: Identity): string {
	return `Row ${identity(true)} is not encrypted, but encryption is on: pass \`migrate: true\` if that is expected.`;
}

function damaged(identity: Identity, cause?: unknown): CheckpointError {
	return new CheckpointError("CORRUPT", `Row ${identity(true)} is damaged, or is not where it was put.`, { cause });
}

/** Returns nothing if it does not pay. */
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

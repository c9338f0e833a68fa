import { createCipheriv, createDecipheriv, createHash } from "node:crypto";
import { constants, crc32, deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { SqliteSaver } from "../../../src/sqlite.ts";
import type { EncryptionOptions } from "../../../src/storage/sealed/keyring.ts";
import { type Identity, Sealer } from "../../../src/storage/sealed/sealer.ts";

const k1 = new Uint8Array(32).map((_, i) => i);
const k2 = new Uint8Array(32).map((_, i) => 255 - i);
const named: EncryptionOptions = { keys: { k1, k2 }, current: "k1" };

const plain = new Sealer({ compression: true });
const encrypted = sealerWith({ key: k1 });

const here = place("here");
const text = new TextEncoder();

function sealerWith(encryption: EncryptionOptions, compression = true): Sealer {
	return new Sealer({ encryption, compression });
}

/** A row of a thread. */
function place(name: string, thread = "thread"): Identity {
	return (isBound) => JSON.stringify([isBound ? thread : null, name]);
}

/** Bytes that do not compress, the same each time. */
function noise(size: number): Buffer {
	return createCipheriv("aes-256-ctr", k2, new Uint8Array(16)).update(new Uint8Array(size));
}

/** What opening throws; opening must not succeed. */
function failure(open: () => unknown): { code: string; message: string } {
	try {
		open();
	} catch (error) {
		return error as { code: string; message: string };
	}
	throw new Error("It opened.");
}

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
	const copy = new Uint8Array(bytes);
	copy[bit >> 3]! ^= 1 << (bit & 7);
	return copy;
}

/** Values of many sizes, which compress and which don't. */
const samples = [0, 1, 15, 16, 17, 511, 1023, 1024, 5000, 100_000].flatMap((size) => [
	noise(size),
	text.encode("all work and no play ".repeat(size)).subarray(0, size),
]);

describe("an encryption key", () => {
	const hex = Buffer.from(k1).toString("hex");
	const base64 = Buffer.from(k1).toString("base64");

	it.each<[string, Uint8Array | string]>([
		["a Uint8Array", k1],
		["a Buffer", Buffer.from(k1)],
		["part of a larger buffer", new Uint8Array([9, ...k1, 9]).subarray(1, 33)],
		["hexadecimal", hex],
		["hexadecimal in capitals", hex.toUpperCase()],
		["Base64", base64],
		["Base64 without padding", base64.replace("=", "")],
		["Base64 for URLs", Buffer.from(k1).toString("base64url")],
		["a line of a file", `${base64}\n`],
	])("can be %s", (_, key) => {
		const envelope = encrypted.seal(text.encode("value"), here);
		expect(Buffer.from(sealerWith({ key }).open(envelope, here)).toString()).toBe("value");
	});

	it("may use the letters that Base64 for URLs has instead of others", () => {
		const key = new Uint8Array(32).fill(0xfb);
		const envelope = sealerWith({ key }).seal(text.encode("value"), here);
		for (const spelling of ["base64", "base64url"] as const)
			expect(sealerWith({ key: Buffer.from(key).toString(spelling) }).open(envelope, here)).toBeDefined();
	});

	it("is copied: what becomes of the bytes that were given does not matter", () => {
		const key = new Uint8Array(k1);
		const sealer = sealerWith({ key });
		key.fill(0);
		expect(encrypted.open(sealer.seal(text.encode("value"), here), here)).toBeDefined();
	});

	it.each<[string, unknown]>([
		["null", null],
		["false", false],
		["an empty text", ""],
		["a text", hex],
		["bytes", k1],
		["an empty object", {}],
		["no key", { key: undefined }],
		["an empty key", { key: "" }],
		["31 bytes", { key: k1.subarray(1) }],
		["33 bytes", { key: new Uint8Array(33) }],
		["32 characters that are no key", { key: "x".repeat(32) }],
		["63 hexadecimal digits", { key: hex.slice(1) }],
		["64 digits of which one is not hexadecimal", { key: `g${hex.slice(1)}` }],
		["a passphrase", { key: "a passphrase that has forty-three characters" }],
		["a passphrase whose letters would make a key", { key: "the quick brown fox jumps over the lazy dog and again" }],
		["a number", { key: 7 }],
		["an ArrayBuffer", { key: k1.buffer }],
		["other numbers", { key: new Uint32Array(32) }],
		["no keys", { keys: undefined, current: "k1" }],
		["an empty set of keys", { keys: {}, current: "k1" }],
		["no current key", { keys: { k1 } }],
		["a current key that is not there", { keys: { k1 }, current: "k2" }],
		["a current key that every object has", { keys: { k1 }, current: "constructor" }],
		["a current key among keys of which one is bad", { keys: { k1, k2: "k2" }, current: "k1" }],
		["a key and keys", { key: k1, keys: { k1 }, current: "k1" }],
		["a key and a current one", { key: k1, current: "k1" }],
		["a misspelt option", { key: k1, migrat: true }],
		["a migrate that is no boolean", { key: k1, migrate: "yes" }],
		["a name of 256 bytes", { keys: { ["é".repeat(128)]: k1 }, current: "é".repeat(128) }],
		["a name with half of a surrogate pair", { keys: { "\ud800": k1 }, current: "\ud800" }],
	])("can't be %s", (_, encryption) => {
		const make = () => new SqliteSaver(":memory:", { encryption: encryption as EncryptionOptions });
		expect(failure(make).code).toBe("INVALID_OPTION");
	});

	it.each(["", "k", "__proto__", "2026-11", "ключ", "x".repeat(255)])("can have the name %j", (name) => {
		const sealer = sealerWith({ keys: { [name]: k1, other: k2 }, current: name });
		expect(sealer.open(sealer.seal(text.encode("value"), here), here)).toBeDefined();
	});

	it("is never part of an error", () => {
		const messages = [
			failure(() => sealerWith({ key: hex.slice(1) })).message,
			failure(() => sealerWith({ key: k2 }).open(encrypted.seal(k1, here), here)).message,
		];
		for (const message of messages) expect(message).not.toMatch(/0405060708|BAUGBwg/);
	});
});

describe("compression", () => {
	it.each([null, "yes", 1])("can't be %j", (compression) => {
		const make = () => new SqliteSaver(":memory:", { compression: compression as unknown as boolean });
		expect(failure(make).code).toBe("INVALID_OPTION");
	});

	const prose = text.encode(Array.from({ length: 9000 }, (_, i) => `word${(i * 7919) % 1000} `).join(""));

	describe.each([
		["plain", plain, new Sealer({ compression: false }), 5],
		["encrypted", encrypted, sealerWith({ key: k1 }, false), 34],
	])("of %s envelopes", (_, sealer, without, overhead) => {
		it("makes large values smaller, and says so in the first byte", () => {
			for (const size of [2048, 16_384, 65_536]) {
				const value = prose.subarray(0, size);
				const envelope = sealer.seal(value, here);
				expect(envelope.length).toBeLessThan(size * 0.7);
				expect(envelope[0]! & 1).toBe(1);
				expect(Buffer.compare(sealer.open(envelope, here), value)).toBe(0);
			}
		});

		it("leaves small values as they are", () => {
			const envelope = sealer.seal(prose.subarray(0, 512), here);
			expect([envelope.length, envelope[0]! & 1]).toEqual([512 + overhead, 0]);
		});

		it("can be turned off, and what was compressed is read all the same", () => {
			const envelope = without.seal(prose, here);
			expect([envelope.length, envelope[0]! & 1]).toEqual([prose.length + overhead, 0]);
			expect(Buffer.compare(sealer.open(envelope, here), prose)).toBe(0);
			expect(Buffer.compare(without.open(sealer.seal(prose, here), here), prose)).toBe(0);
		});

		it.each([2000, 60_000, 200_000])("stores %i bytes that do not shrink as they are", (size) => {
			const random = noise(size);
			const pictures = text.encode(noise((size * 3) / 4).toString("base64"));
			for (const value of [random, pictures]) {
				const envelope = sealer.seal(value, here);
				expect([envelope.length, envelope[0]! & 1]).toEqual([value.length + overhead, 0]);
				expect(Buffer.compare(sealer.open(envelope, here), value)).toBe(0);
			}
		});

		it.each([0, 0.25, 0.5, 0.75, 1])("works on a long text with a picture at %d of its length", (part) => {
			const long = Buffer.concat([prose, prose]);
			const start = Math.floor(long.length * part);
			const value = Buffer.concat([long.subarray(0, start), noise(9000), long.subarray(start)]);
			const envelope = sealer.seal(value, here);
			expect(envelope.length).toBeLessThan(value.length * 0.7);
			expect(Buffer.compare(sealer.open(envelope, here), value)).toBe(0);
		});

		it("never makes an envelope that would be taken for a bomb", () => {
			for (const size of [1000, 100_000, 1_000_000, 1_100_000, 5_000_000]) {
				const zeros = new Uint8Array(size);
				expect(Buffer.compare(sealer.open(sealer.seal(zeros, here), here), zeros)).toBe(0);
			}
		});
	});

	it("does not inflate a bomb, though its checksum is right", () => {
		const megabyte = deflateRawSync(new Uint8Array(1 << 20), { finishFlush: constants.Z_FULL_FLUSH });
		const bomb = Buffer.concat([...Array.from({ length: 1024 }, () => megabyte), deflateRawSync("")]);
		const envelope = forgePlain(1, bomb, here(false));
		const before = process.resourceUsage().maxRSS;
		expect(failure(() => plain.open(envelope, here)).code).toBe("CORRUPT");
		// In kilobytes: the bomb is of one megabyte, and would be of 1,024.
		expect(process.resourceUsage().maxRSS - before).toBeLessThan(256 * 1024);
	});

	it("finds content that is not compressed although it says so", () => {
		for (const content of ["", "not deflated", "\xff\xff\xff\xff"]) {
			const envelope = forgePlain(1, Buffer.from(content, "latin1"), here(false));
			expect(failure(() => plain.open(envelope, here))).toMatchObject({
				code: "CORRUPT",
				message: expect.stringContaining(here(true)),
			});
		}
	});
});

/** The layout of a plain envelope, once more. */
function forgePlain(flags: number, content: Uint8Array, identity: string): Uint8Array {
	const sum = Buffer.alloc(4);
	const start = crc32(identity, flags);
	sum.writeUInt32BE(content.length === 0 ? start : crc32(content, start));
	return Buffer.concat([Buffer.of(flags), sum, content]);
}

describe("a plain envelope", () => {
	it("gives back what was sealed", () => {
		for (const value of samples) expect(Buffer.compare(plain.open(plain.seal(value, here), here), value)).toBe(0);
	});

	it("is a byte of flags, a checksum that begins with the identity, and the content", () => {
		const envelope = plain.seal(text.encode("content"), here);
		expect(Buffer.from(envelope)).toEqual(forgePlain(0, text.encode("content"), '[null,"here"]'));
		expect(Buffer.from(envelope).toString("hex")).toBe("00d752ad14636f6e74656e74");
	});

	it("may be empty, however its bytes are kept", () => {
		for (const value of [new Uint8Array(0), new Uint8Array(new ArrayBuffer(0)), Buffer.alloc(4).subarray(4)])
			expect(plain.open(new Uint8Array(plain.seal(value, here)), here)).toHaveLength(0);
	});

	it.each([
		["small", text.encode("content")],
		["compressed", text.encode("content ".repeat(200))],
		["empty", new Uint8Array(0)],
	])("shows every flipped bit and every cut when it is %s", (_, value) => {
		const envelope = plain.seal(value, here);
		for (let bit = 0; bit < envelope.length * 8; bit++) {
			const { code, message } = failure(() => plain.open(flipped(envelope, bit), here));
			expect(code).toBe("CORRUPT");
			expect(message).toContain(here(true));
		}
		for (let length = 0; length < envelope.length; length++)
			expect(failure(() => plain.open(envelope.subarray(0, length), here)).code).toBe("CORRUPT");
	});

	it("opens only in its own place, in any thread", () => {
		const envelope = plain.seal(text.encode("content"), here);
		expect(failure(() => plain.open(envelope, place("there"))).code).toBe("CORRUPT");
		expect(plain.open(envelope, place("here", "other thread"))).toHaveLength(7);
	});

	it("is refused where encryption is on, unless migration is asked for", () => {
		const envelope = plain.seal(text.encode("content"), here);
		expect(failure(() => encrypted.open(envelope, here))).toMatchObject({
			code: "CORRUPT",
			message: expect.stringMatching(/thread.*here.*migrate/),
		});
		expect(failure(() => sealerWith({ key: k1, migrate: false }).open(envelope, here)).code).toBe("CORRUPT");
		expect(sealerWith({ key: k1, migrate: true }).open(envelope, here)).toHaveLength(7);
	});

	it("shows damage while migration is on, too", () => {
		const migrating = sealerWith({ key: k1, migrate: true });
		const envelope = plain.seal(text.encode("content"), here);
		for (let bit = 0; bit < envelope.length * 8; bit++)
			expect(failure(() => migrating.open(flipped(envelope, bit), here)).code).toMatch(/CORRUPT|WRONG_KEY/);
	});
});

describe("an encrypted envelope", () => {
	it("gives back what was sealed", () => {
		for (const value of samples)
			expect(Buffer.compare(encrypted.open(encrypted.seal(value, here), here), value)).toBe(0);
	});

	it("is laid out so that anybody with the key can read it", () => {
		const envelope = Buffer.from(sealerWith(named).seal(text.encode("content"), here));
		expect([...envelope.subarray(0, 4)]).toEqual([2, 2, 0x6b, 0x31]);
		const hash = createHash("sha256").update("langgraph-checkpoint-delta key fingerprint").update(k1).digest();
		expect(envelope.subarray(4, 8)).toEqual(hash.subarray(0, 4));
		const decipher = createDecipheriv("aes-256-gcm", k1, envelope.subarray(8, 20));
		decipher.setAAD(Buffer.concat([envelope.subarray(0, 20), Buffer.from('["thread","here"]')]));
		decipher.setAuthTag(envelope.subarray(-16));
		const content = Buffer.concat([decipher.update(envelope.subarray(20, -16)), decipher.final()]);
		expect(content.toString()).toBe("content");
		expect(envelope).toHaveLength(20 + 7 + 16);
	});

	it.each([
		["small", text.encode("content")],
		["compressed", text.encode("content ".repeat(200))],
		["empty", new Uint8Array(0)],
	])("shows every flipped bit, every cut and what is added when it is %s", (_, value) => {
		const sealer = sealerWith(named);
		const envelope = sealer.seal(value, here);
		for (let bit = 0; bit < envelope.length * 8; bit++) {
			const { code, message } = failure(() => sealer.open(flipped(envelope, bit), here));
			expect(code).toMatch(/^(CORRUPT|WRONG_KEY)$/);
			expect(message).toContain(here(true));
		}
		for (let length = 0; length < envelope.length; length++)
			expect(failure(() => sealer.open(envelope.subarray(0, length), here)).code).toMatch(/^(CORRUPT|WRONG_KEY)$/);
		for (const more of [0, 1, 255])
			expect(failure(() => sealer.open(Buffer.concat([envelope, Buffer.of(more)]), here)).code).toBe("CORRUPT");
	});

	it("opens only in its own place and thread", () => {
		const envelope = encrypted.seal(text.encode("content"), here);
		for (const elsewhere of [place("there"), place("here", "other thread"), place("here ")])
			expect(failure(() => encrypted.open(envelope, elsewhere))).toMatchObject({
				code: "CORRUPT",
				message: expect.stringContaining(elsewhere(true)),
			});
		expect(encrypted.open(envelope, here)).toHaveLength(7);
	});

	it("can't be put together from parts of two", () => {
		const [a, b] = ["content", "another"].map((value) => Buffer.from(encrypted.seal(text.encode(value), here)));
		for (let cut = 1; cut < a!.length; cut++) {
			const mixed = Buffer.concat([a!.subarray(0, cut), b!.subarray(cut)]);
			if (mixed.equals(a!) || mixed.equals(b!)) continue;
			expect(failure(() => encrypted.open(mixed, here)).code).toBe("CORRUPT");
		}
	});

	it("names its key: one that is missing is asked for", () => {
		const envelope = sealerWith(named).seal(text.encode("content"), here);
		expect(failure(() => sealerWith({ keys: { k2 }, current: "k2" }).open(envelope, here))).toMatchObject({
			code: "WRONG_KEY",
			message: expect.stringMatching(/thread.*here.*"k1".*not given/),
		});
	});

	it("tells another key of the same name from damage", () => {
		const envelope = sealerWith(named).seal(text.encode("content"), here);
		expect(failure(() => sealerWith({ keys: { k1: k2 }, current: "k1" }).open(envelope, here))).toMatchObject({
			code: "WRONG_KEY",
			message: expect.stringMatching(/thread.*here.*"k1"/),
		});
	});

	it("needs a key at all", () => {
		expect(failure(() => plain.open(encrypted.seal(text.encode("content"), here), here))).toMatchObject({
			code: "WRONG_KEY",
			message: expect.stringMatching(/thread.*here.*encryption/),
		});
	});

	it("opens with its key under another name", () => {
		const envelope = encrypted.seal(text.encode("content"), here);
		const renamed = sealerWith({ keys: { old: k1, new: k2 }, current: "new" });
		expect(renamed.open(envelope, here)).toHaveLength(7);
	});

	it("under any of the keys opens, and new ones are under the current one", () => {
		const before = sealerWith({ keys: { k1, k2 }, current: "k1" });
		const after = sealerWith({ keys: { k2, k1 }, current: "k2" });
		const [older, newer] = [before.seal(k1, here), after.seal(k1, here)];
		for (const sealer of [before, after])
			for (const envelope of [older, newer]) expect(sealer.open(envelope, here)).toHaveLength(32);
		const alone = sealerWith({ keys: { k2 }, current: "k2" });
		expect(alone.open(newer, here)).toHaveLength(32);
		expect(failure(() => alone.open(older, here)).code).toBe("WRONG_KEY");
	});

	it("never has the nonce of another", () => {
		const sealers = [encrypted, sealerWith({ key: k1 })];
		const nonces = new Set<string>();
		const value = text.encode("the same value");
		for (let i = 0; i < 10_000; i++)
			for (const sealer of sealers)
				nonces.add(Buffer.from(sealer.seal(value, here)).subarray(6, 18).toString("latin1"));
		expect(nonces.size).toBe(20_000);
	});

	it("looks like random bytes, whatever is in it", () => {
		const envelope = Buffer.from(encrypted.seal(new Uint8Array(1000), here)).subarray(18);
		expect(new Set(envelope).size).toBeGreaterThan(200);
	});
});

describe("what is not an envelope at all", () => {
	it.each<[string, unknown]>([
		["no bytes", new Uint8Array(0)],
		["an unknown flag", new Uint8Array(40).fill(4)],
		["all ones", new Uint8Array(40).fill(255)],
		["a text", "x'00'"],
		["null", null],
	])("is refused: %s", (_, stored) => {
		for (const sealer of [plain, encrypted, sealerWith({ key: k1, migrate: true })])
			expect(failure(() => sealer.open(stored as Uint8Array, here))).toMatchObject({
				code: "CORRUPT",
				message: expect.stringContaining(here(true)),
			});
	});
});

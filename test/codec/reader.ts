/**
 * A reader of the stored format, written from `src/codec/FORMAT.md` alone: it uses nothing of the package. What is told
 * apart by a tag is answered as `{ tag, fields }`.
 */
import { createDecipheriv } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inflateRawSync } from "node:zlib";

const description = readFileSync(join(import.meta.dirname, "../../src/codec/FORMAT.md"), "utf8");

/** A paragraph that lists names, in the order of their numbers. */
function listIn(paragraph: string): string[] {
	const start = description.indexOf(`**${paragraph}**`);
	return [...description.slice(start, description.indexOf("\n\n", start)).matchAll(/`(\w+)`/g)].map(
		([, name]) => name!,
	);
}

const ARGUMENTS = listIn("Arguments");
export const CLASS_NAMES = listIn("Classes");

export class Tagged {
	readonly tag: number;
	readonly fields: unknown[] = [];
	constructor(tag: number) {
		this.tag = tag;
	}
}

class ValueReader {
	readonly #bytes: Buffer;
	readonly #objects: unknown[] = [];
	#at = 1;

	constructor(bytes: Uint8Array) {
		this.#bytes = Buffer.from(bytes);
	}

	readTop(): unknown {
		const layout = (this.#bytes[0] as number) & 0x0f;
		if (layout === 0) return this.#read();
		const array: unknown[] = [];
		const object: Record<string, unknown> = {};
		this.#objects.push(layout === 1 ? array : object);
		while (this.#at < this.#bytes.length)
			if (layout === 1) array.push(this.#read());
			else object[this.#read() as string] = this.#read();
		return layout === 1 ? array : object;
	}

	#read(): unknown {
		const head = this.#uint(1);
		if (head < 0x80) return head;
		if (head < 0x90) return this.#readMap(head & 15);
		if (head < 0xa0) return this.#readArray(head & 15);
		if (head < 0xc0) return this.#take(head & 31).toString();
		if (head >= 0xe0) return head - 256;
		const [kind, size] = HEADS[head] ?? ["unknown", 0];
		if (kind === "float") return this.#take(8).readDoubleBE();
		if (kind === "bigint") return head === 0xd3 ? this.#take(8).readBigInt64BE() : this.#take(8).readBigUInt64BE();
		if (kind === "constant") return [null, undefined, false, true][head - 0xc0];
		if (kind === "fixext") return this.#readExtension(size);
		const number = this.#uint(size);
		if (kind === "int") return head < 0xd0 ? number : number - (number < 2 ** (size * 8 - 1) ? 0 : 2 ** (size * 8));
		if (kind === "text") return this.#take(number).toString();
		if (kind === "bin") return this.#number(new Uint8Array(this.#take(number)));
		if (kind === "array") return this.#readArray(number);
		if (kind === "map") return this.#readMap(number);
		if (kind === "ext") return this.#readExtension(number);
		throw new Error(`no such head: ${head}`);
	}

	#readArray(length: number): unknown {
		const isTagged = this.#bytes.subarray(this.#at, this.#at + 3).toString("hex") === "d40000";
		if (length === 0 || !isTagged) return this.#readElements(length, []);
		this.#at += 3;
		const tag = this.#uint(1);
		if (tag === 0) return this.#readElements(length - 2, []);
		if (tag === 1) return -0;
		if (tag === 2) return Number.NaN;
		if (tag === 3) return this.#readText();
		if (tag === 6) return this.#objects[this.#read() as number];
		const tagged = this.#number(new Tagged(tag));
		while (tagged.fields.length < length - 2) tagged.fields.push(this.#read());
		return tag === 7 ? this.#replace(tagged, new Date(tagged.fields[0] as number)) : tagged;
	}

	#readElements(length: number, array: unknown[]): unknown[] {
		this.#number(array);
		while (array.length < length) array.push(this.#read());
		return array;
	}

	/** The code units are no object of their own. */
	#readText(): string {
		const units = this.#read() as Uint8Array;
		this.#objects.pop();
		return Buffer.from(units).toString("utf16le");
	}

	#replace<T>(tagged: Tagged, value: T): T {
		this.#objects[this.#objects.indexOf(tagged)] = value;
		return value;
	}

	#readMap(length: number): Record<string, unknown> {
		const object = this.#number<Record<string, unknown>>({});
		for (let i = 0; i < length; i++) object[this.#read() as string] = this.#read();
		return object;
	}

	#readExtension(length: number): unknown {
		const type = this.#uint(1);
		const data = this.#take(length);
		if (type === 0) return undefined;
		if (type === 0x42) return BigInt.asIntN(length * 8, BigInt(`0x${data.toString("hex")}`));
		throw new Error(`no such extension: ${type}`);
	}

	#number<T>(object: T): T {
		this.#objects.push(object);
		return object;
	}

	#uint(size: number): number {
		return this.#take(size).readUIntBE(0, size);
	}

	#take(length: number): Buffer {
		this.#at += length;
		return this.#bytes.subarray(this.#at - length, this.#at);
	}
}

const HEADS: Record<number, [kind: string, size: number]> = {
	...Object.fromEntries([0xc0, 0xc2, 0xc3].map((head) => [head, ["constant", 0]])),
	...Object.fromEntries([1, 2, 4].map((size, i) => [0xc4 + i, ["bin", size]])),
	...Object.fromEntries([1, 2, 4].map((size, i) => [0xd9 + i, ["text", size]])),
	...Object.fromEntries([1, 2, 4].map((size, i) => [0xcc + i, ["int", size]])),
	...Object.fromEntries([2, 4].map((size, i) => [0xdc + i, ["array", size]])),
	...Object.fromEntries([2, 4].map((size, i) => [0xde + i, ["map", size]])),
	...Object.fromEntries([1, 2, 4].map((size, i) => [0xd0 + i, ["int", size]])),
	...Object.fromEntries([1, 2, 4, 8, 16].map((size, i) => [0xd4 + i, ["fixext", size]])),
	...Object.fromEntries([1, 2, 4].map((size, i) => [0xc7 + i, ["ext", size]])),
	203: ["float", 8],
	207: ["bigint", 8],
	211: ["bigint", 8],
};

/** The name of an argument, and the class of an instance of LangChain. */
export function nameOfArgument(key: unknown): string {
	return typeof key === "number" ? (ARGUMENTS[key] as string) : (key as string);
}

export function readValue(bytes: Uint8Array): unknown {
	return new ValueReader(bytes).readTop();
}

/** The fields of a row, and its cells: the numbers of blobs, or bytes. */
export function readFields(bytes: Uint8Array): { fields: unknown[]; cells: (number | Uint8Array)[] } {
	const end = bytes.indexOf(0);
	const fields = JSON.parse(Buffer.from(bytes.subarray(0, end)).toString()) as unknown[];
	let rest = bytes.subarray(end + 1);
	const cells = (fields.pop() as (number | [length: number, type?: string])[]).map((cell) => {
		if (typeof cell === "number") return cell;
		const value = rest.subarray(0, cell[0]);
		rest = rest.subarray(cell[0]);
		return value;
	});
	return { fields, cells };
}

/** The bytes that a patch makes of its base. */
export function readPatch(base: Uint8Array, patch: Uint8Array): Uint8Array {
	const [length, ...operations] = readValue(patch) as (number | Uint8Array)[];
	const result: number[] = [];
	let from = 0;
	while (operations.length > 0) {
		const operation = operations.shift() as number | Uint8Array;
		if (operation instanceof Uint8Array) result.push(...operation);
		else {
			from += operations.shift() as number;
			result.push(...base.subarray(from, from + operation));
			from += operation;
		}
	}
	if (result.length !== length) throw new Error("a patch of another length than it says");
	return Uint8Array.from(result);
}

/** The content of an envelope. */
export function readEnvelope(envelope: Uint8Array, identity: unknown[], key?: Uint8Array): Uint8Array {
	const flags = envelope[0] as number;
	const content = flags & 2 ? decrypt(envelope, JSON.stringify(identity), key!) : envelope.subarray(5);
	if ((flags & 2) === 0) {
		const sum = crc32(content, crc32(Buffer.from(JSON.stringify(identity)), flags));
		if (sum !== Buffer.from(envelope).readUInt32BE(1)) throw new Error("a checksum that does not fit");
	}
	return flags & 1 ? inflateRawSync(content) : content;
}

function decrypt(envelope: Uint8Array, identity: string, key: Uint8Array): Uint8Array {
	const nonce = 2 + (envelope[1] as number) + 4;
	const decipher = createDecipheriv("aes-256-gcm", key, envelope.subarray(nonce, nonce + 12));
	decipher.setAAD(Buffer.concat([envelope.subarray(0, nonce + 12), Buffer.from(identity)]));
	decipher.setAuthTag(envelope.subarray(-16));
	return Buffer.concat([decipher.update(envelope.subarray(nonce + 12, -16)), decipher.final()]);
}

function crc32(bytes: Uint8Array, start: number): number {
	let sum = ~start;
	for (const byte of bytes) {
		sum ^= byte;
		for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
	}
	return ~sum >>> 0;
}

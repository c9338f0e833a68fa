import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

function parse(data: Uint8Array | string): unknown {
	const text = typeof data === "string" ? data : decoder.decode(data);
	return text === "" ? undefined : JSON.parse(text);
}

/** JSON, as text bytes; the base of the serializers below. Remembers what it was given. */
export class JsonSerde implements SerializerProtocol {
	readonly dumped: unknown[] = [];
	readonly loaded: unknown[] = [];

	async dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
		return this.dump(value);
	}

	async loadsTyped(type: string, data: Uint8Array | string): Promise<unknown> {
		return this.load(type, data);
	}

	protected dump(value: unknown): [string, Uint8Array] {
		this.dumped.push(structuredClone(value));
		return ["json", encoder.encode(value === undefined ? "" : JSON.stringify(value))];
	}

	protected load(_type: string, data: Uint8Array | string): unknown {
		const value = parse(data);
		this.loaded.push(structuredClone(value));
		return value;
	}
}

/** A tag per kind of value, and bytes that only the right tag can read. */
export class TaggedSerde extends JsonSerde {
	protected override dump(value: unknown): [string, Uint8Array] {
		const [, bytes] = super.dump(value);
		const tag = tagOf(value);
		return [tag, bytes.map((byte) => byte ^ maskOf(tag))];
	}

	protected override load(type: string, data: Uint8Array | string): unknown {
		if (typeof data === "string") throw new Error("bytes were turned into text");
		const value = super.load(
			type,
			data.map((byte) => byte ^ maskOf(type)),
		);
		if (tagOf(value) !== type) throw new Error(`a ${tagOf(value)} was stored as ${type}`);
		return value;
	}
}

function tagOf(value: unknown): string {
	return Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
}

/** Turns ASCII into bytes that are no UTF-8. */
function maskOf(tag: string): number {
	return 0x80 | tag.length;
}

/** Returns at once, with no promise in between. */
export class SyncSerde extends JsonSerde {
	override dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
		return this.dump(value) as never;
	}

	override loadsTyped(type: string, data: Uint8Array | string): Promise<unknown> {
		return this.load(type, data) as never;
	}
}

/** Gives text instead of bytes. */
export class TextSerde extends JsonSerde {
	override async dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
		const [type, bytes] = this.dump(value);
		return [type, decoder.decode(bytes) as never];
	}
}

/** Reads its input at once and answers later. */
export class SlowSerde extends JsonSerde {
	override async dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
		const answer = this.dump(value);
		await new Promise((resolve) => setTimeout(resolve, 2));
		return answer;
	}
}

/** Other bytes for the same value each time, as encryption gives. */
export class NonceSerde extends JsonSerde {
	#nonce = 0;

	protected override dump(value: unknown): [string, Uint8Array] {
		const [, bytes] = super.dump(value);
		this.#nonce = (this.#nonce * 75 + 74) % 65537;
		const mask = this.#nonce & 0xff;
		return ["sealed", new Uint8Array([mask, ...bytes.map((byte) => byte ^ mask)])];
	}

	protected override load(type: string, data: Uint8Array | string): unknown {
		if (typeof data === "string") throw new Error("bytes were turned into text");
		const mask = data[0] as number;
		return super.load(
			type,
			data.subarray(1).map((byte) => byte ^ mask),
		);
	}
}

/** Refuses one value: by throwing, by a rejected promise, or only when it is read. */
export class FailingSerde extends JsonSerde {
	readonly #value: string;
	readonly #manner: "throw" | "reject" | "load";

	constructor(value: string, manner: "throw" | "reject" | "load" = "reject") {
		super();
		this.#value = value;
		this.#manner = manner;
	}

	override dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
		if (this.#manner !== "load" && value === this.#value) {
			const error = new Error("refused by the serializer");
			if (this.#manner === "throw") throw error;
			return Promise.reject(error);
		}
		return super.dumpsTyped(value);
	}

	override async loadsTyped(type: string, data: Uint8Array | string): Promise<unknown> {
		const value = this.load(type, data);
		if (this.#manner === "load" && value === this.#value) throw new Error("refused by the serializer");
		return value;
	}
}

import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { type Classes, ClassRegistry } from "./class-registry.ts";
import { decode } from "./decoder.ts";
import { Encoder } from "./encoder.ts";

/** A value as bytes. `type` is the tag of a custom serializer, `undefined` for the built-in format. */
export interface Encoded {
	readonly type: string | undefined;
	readonly bytes: Uint8Array;
}

/** Value ⇄ bytes. Nothing else in the package knows what stored values look like. */
export interface Codec {
	/** Looks at the value before it returns; a promise only delays the bytes. */
	encode(value: unknown): Encoded | Promise<Encoded>;
	/** A fresh object each time. `willBeExtended`: it will most likely be encoded again next, with something added. */
	decode(encoded: Encoded, willBeExtended?: boolean): unknown;
}

export interface CodecOptions {
	/** Classes of the application whose instances are to come back as such. */
	classes?: Classes;
	/** Refuses values that would not come back as they were. */
	strict?: boolean;
}

/** The built-in codec. */
export class DeltaCodec implements Codec {
	readonly #encoder: Encoder;
	readonly #classes: ClassRegistry;

	constructor({ classes, strict = false }: CodecOptions = {}) {
		this.#classes = new ClassRegistry(classes);
		this.#encoder = new Encoder({ classes: this.#classes, isStrict: strict });
	}

	encode(value: unknown): Encoded {
		return { type: undefined, bytes: this.#encoder.encode(value) };
	}

	decode({ bytes }: Encoded, willBeExtended = false): unknown {
		const value = decode(bytes, this.#classes);
		if (willBeExtended) this.#encoder.memos.keepRead(value, bytes);
		return value;
	}
}

/** What a serializer made of a value: a pair of its type, and text or bytes. */
function toEncoded(answer: [string, Uint8Array | string]): Encoded {
	const [type, data] = Array.isArray(answer) ? answer : [];
	if (typeof type === "string" && typeof data === "string")
		return { type: `t${type}`, bytes: new TextEncoder().encode(data) };
	if (typeof type === "string" && data instanceof Uint8Array) return { type: `b${type}`, bytes: new Uint8Array(data) };
	throw new TypeError("the serializer's `dumpsTyped` must answer [type, bytes]");
}

/** Any serializer of LangGraph's protocol as a codec: whole values, one at a time, with the tag it gave them. */
export class SerdeCodec implements Codec {
	readonly #serde: SerializerProtocol;

	constructor(serde: SerializerProtocol) {
		this.#serde = serde;
	}

	encode(value: unknown): Promise<Encoded> {
		// Called at once, not in a then: what the caller changes afterwards must not be stored.
		return Promise.resolve(this.#serde.dumpsTyped(value)).then(toEncoded);
	}

	decode({ type = "", bytes }: Encoded): Promise<unknown> {
		const data = type.startsWith("t") ? new TextDecoder().decode(bytes) : new Uint8Array(bytes);
		return Promise.resolve(this.#serde.loadsTyped(type.slice(1), data));
	}
}

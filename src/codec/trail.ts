import { isPlain } from "./built-ins.ts";

/** Longer ones are not kept: what is noted takes about as much memory as the value itself. */
const MOST_NOTED = 32_768;
/** Shorter values are encoded as quickly as they are compared. */
const WORTH_KEEPING = 2048;
/** How many bytes of values are kept, with what they held. The next step follows soon, as a rule. */
const MOST_KEPT_BYTES = 1024 * 1024;

const END = Symbol("end");

/** The bytes of a value and what it held when it was encoded, as long as it is one of the last. */
interface Encoded {
	bytes: Uint8Array | undefined;
	held: readonly unknown[];
}

/** One of the last values, which may be gone by now. */
interface Recent {
	readonly encoded: WeakRef<Encoded>;
	readonly length: number;
}

/**
 * Remembers the bytes of whole values. What a task writes to a channel without a reducer is the channel's value next, the
 * same object: it need not be encoded twice, if all that it holds is still as it was.
 *
 * While a value is encoded its keys and members are noted in the order in which they are written, and compared in the
 * same order later. Only values made of plain objects, arrays and primitive values are remembered, the last few of them,
 * and no longer than they live.
 */
export class Trail {
	readonly #encoded = new WeakMap<object, Encoded>();
	readonly #last: Recent[] = [];
	#lastBytes = 0;
	#held: unknown[] = [];
	#isWhole = false;

	/** Begins with a value. */
	begin(): void {
		this.#isWhole = true;
	}

	/** From here on the value depends on more than can be noted. */
	abandon(): void {
		this.#isWhole = false;
		if (this.#held.length > 0) this.#held = [];
	}

	array(length: number): void {
		if (this.#isWhole) this.#held.push(length);
	}

	element(value: unknown): void {
		if (!this.#isWhole) return;
		this.#held.push(value);
		if (this.#held.length > MOST_NOTED) this.abandon();
	}

	entry(key: string, value: unknown): void {
		if (!this.#isWhole) return;
		this.#held.push(key, value);
		if (this.#held.length > MOST_NOTED) this.abandon();
	}

	endObject(): void {
		if (this.#isWhole) this.#held.push(END);
	}

	/** Ends with a value. */
	end(value: unknown, bytes: Uint8Array): void {
		const isWorthIt = bytes.length >= WORTH_KEEPING && bytes.length <= MOST_KEPT_BYTES;
		if (this.#isWhole && isWorthIt && typeof value === "object" && value !== null) this.#keep(value, bytes);
		this.abandon();
	}

	#keep(value: object, bytes: Uint8Array): void {
		const { length } = bytes;
		const encoded = { bytes, held: this.#held.slice() };
		this.#encoded.set(value, encoded);
		this.#last.push({ encoded: new WeakRef(encoded), length });
		this.#lastBytes += length;
		while (this.#lastBytes > MOST_KEPT_BYTES) this.#forgetOldest();
	}

	#forgetOldest(): void {
		const { encoded, length } = this.#last.shift() as Recent;
		this.#lastBytes -= length;
		const oldest = encoded.deref();
		if (oldest === undefined) return;
		oldest.bytes = undefined;
		oldest.held = [];
	}

	/** The bytes of a value that was encoded before and has not changed since, if they are still there. */
	find(value: unknown): Uint8Array | undefined {
		if (typeof value !== "object" || value === null) return undefined;
		const encoded = this.#encoded.get(value);
		if (encoded?.bytes === undefined) return undefined;
		return new Comparison(encoded.held).isSame(value) ? encoded.bytes : undefined;
	}
}

/** Goes through a value and what it held, side by side. */
class Comparison {
	readonly #held: readonly unknown[];
	#at = 0;

	constructor(held: readonly unknown[]) {
		this.#held = held;
	}

	isSame(value: object): boolean {
		return Array.isArray(value) ? this.#isSameArray(value) : this.#isSameObject(value as Record<string, unknown>);
	}

	#isSameArray(array: readonly unknown[]): boolean {
		if (this.#held[this.#at++] !== array.length || Object.getPrototypeOf(array) !== Array.prototype) return false;
		for (let i = 0; i < array.length; i++) {
			const element = array[i];
			if (!this.#isSameMember(element) || (element === undefined && !(i in array))) return false;
		}
		return true;
	}

	#isSameObject(object: Record<string, unknown>): boolean {
		if (!isPlain(object) || typeof object.toJSON === "function") return false;
		for (const key in object) if (this.#held[this.#at++] !== key || !this.#isSameMember(object[key])) return false;
		return this.#held[this.#at++] === END;
	}

	#isSameMember(member: unknown): boolean {
		if (!Object.is(member, this.#held[this.#at++])) return false;
		return typeof member !== "object" || member === null || this.isSame(member);
	}
}

/** Numbers that look random and are the same in every run. */
export class Random {
	#state: number;

	constructor(seed: number) {
		this.#state = seed >>> 0;
	}

	/** A number from 0 up to, but not including, 1. */
	next(): number {
		this.#state = (this.#state + 0x6d2b79f5) >>> 0;
		let bits = this.#state;
		bits = Math.imul(bits ^ (bits >>> 15), bits | 1);
		bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
		return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
	}

	/** A whole number below the limit. */
	below(limit: number): number {
		return Math.floor(this.next() * limit);
	}

	pick<T>(items: readonly T[]): T {
		return items[this.below(items.length)] as T;
	}

	/** That many hexadecimal digits. */
	hex(digits: number): string {
		let text = "";
		while (text.length < digits)
			text += this.below(16 ** 4)
				.toString(16)
				.padStart(4, "0");
		return text.slice(0, digits);
	}

	/** An id as LangChain gives messages and LangGraph gives tasks. */
	uuid(): string {
		return inOnePiece(`${this.hex(8)}-${this.hex(4)}-5${this.hex(3)}-9${this.hex(3)}-${this.hex(12)}`);
	}
}

/**
 * Text as it comes from a model or a user. What was put together holds on to its parts until somebody looks at it, so
 * that it would seem to make room in memory when it is stored.
 */
export function inOnePiece(text: string): string {
	return Buffer.from(text).toString();
}

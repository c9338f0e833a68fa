import { CheckpointError } from "../errors.ts";
import { DEEPEST, LAST_TAG, LAYOUT } from "./format.ts";

/** Sizes by type byte, from c0 on: of the value, or of the length in front of it; -1 where none is stored. */
const SIZES = [0, -1, 0, 0, 1, 2, 4, 1, 2, 4, -1, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 16, 1, 2, 4, 2, 4, 2, 4];
const BIGINT_EXTENSION = 0x42;

/** Tags for what is no object, such as -0, may stand one level below the deepest. */
const DEEPEST_STORED = DEEPEST + 1;

export function corrupt(reason: string, options?: ErrorOptions): CheckpointError {
	return new CheckpointError("CORRUPT", `A stored value can't be decoded: ${reason}.`, options);
}

/**
 * Goes over stored bytes before msgpackr sees them: every length fits, nothing is nested too deeply, keys are text, and the
 * only extensions are `undefined` and large integers. msgpackr itself would loop for ever on some bytes, and make functions
 * from others.
 */
export class Validator {
	/** Elements or entries at the top. */
	count = 0;
	/** Whether there are tagged values. */
	hasTags = false;
	#bytes: Uint8Array = new Uint8Array(0);
	#at = 0;

	/**
	 * Throws a CheckpointError with code CORRUPT if the bytes are no value.
	 *
	 * @param ends takes the end of each element or entry of the top
	 */
	check(bytes: Uint8Array, ends?: number[]): void {
		this.#bytes = bytes;
		this.#at = 1;
		this.count = 0;
		this.hasTags = false;
		const layout = (bytes[0] ?? -1) & ~LAYOUT.refs;
		if (layout < LAYOUT.value || layout > LAYOUT.object) throw corrupt(`unknown layout ${bytes[0]}`);
		while (this.#at < bytes.length) {
			if (layout === LAYOUT.object) this.#skipKey();
			this.#skip(0);
			this.count++;
			ends?.push(this.#at);
		}
		if (layout === LAYOUT.value && this.count !== 1) throw corrupt("it is not one value");
	}

	#skip(depth: number): void {
		const head = this.#bytes[this.#at++];
		if (head === undefined) throw corrupt("it is cut short");
		if (head < 0x80 || head >= 0xe0) return;
		if (head < 0x90) return this.#skipMap(head & 0x0f, depth);
		if (head < 0xa0) return this.#skipArray(head & 0x0f, depth);
		if (head < 0xc0) return this.#advance(head & 0x1f);
		const size = SIZES[head - 0xc0] as number;
		if (size < 0) throw corrupt(`unknown type byte ${head}`);
		if (head >= 0xde) return this.#skipMap(this.#length(size), depth);
		if (head >= 0xdc) return this.#skipArray(this.#length(size), depth);
		if (head >= 0xd9 || (head >= 0xc4 && head <= 0xc6)) return this.#advance(this.#length(size));
		if (head === 0xd4 && this.#isUndefined(this.#at - 1)) return this.#advance(2);
		if (head >= 0xd4) return this.#skipBigInt(size);
		if (head >= 0xc7 && head <= 0xc9) return this.#skipBigInt(this.#length(size));
		this.#advance(size);
	}

	#skipArray(length: number, depth: number): void {
		this.#enter(length, depth);
		if (length > 0 && this.#isUndefined(this.#at)) {
			const tag = this.#bytes[this.#at + 3] ?? LAST_TAG + 1;
			if (length < 2 || tag > LAST_TAG) throw corrupt("a tag that is none");
			this.hasTags = true;
		}
		for (let i = 0; i < length; i++) this.#skip(depth + 1);
	}

	#skipMap(length: number, depth: number): void {
		this.#enter(length * 2, depth);
		for (let i = 0; i < length; i++) {
			this.#skipKey();
			this.#skip(depth + 1);
		}
	}

	/** Every element takes a byte at least, so that a length beyond the bytes left is a lie. */
	#enter(length: number, depth: number): void {
		if (length > this.#bytes.length - this.#at) throw corrupt(`${length} elements in too few bytes`);
		if (depth >= DEEPEST_STORED) throw corrupt("it is nested too deeply");
	}

	#skipKey(): void {
		const head = this.#bytes[this.#at] ?? 0;
		if (head < 0xa0 || (head > 0xbf && head < 0xd9) || head > 0xdb) throw corrupt("a key that is not a string");
		this.#skip(0);
	}

	#skipBigInt(length: number): void {
		if (this.#bytes[this.#at] !== BIGINT_EXTENSION || length === 0) throw corrupt("an unknown extension");
		this.#advance(1 + length);
	}

	#isUndefined(at: number): boolean {
		return this.#bytes[at] === 0xd4 && this.#bytes[at + 1] === 0 && this.#bytes[at + 2] === 0;
	}

	#length(size: number): number {
		let length = 0;
		for (let i = 0; i < size; i++) length = length * 0x100 + (this.#bytes[this.#at + i] ?? 0);
		this.#advance(size);
		return length;
	}

	#advance(length: number): void {
		if (length > this.#bytes.length - this.#at) throw corrupt("it is cut short");
		this.#at += length;
	}
}

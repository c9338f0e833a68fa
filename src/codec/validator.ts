import { CheckpointError } from "../errors.ts";
import { DEEPEST, LAST_TAG, LAYOUT } from "./format.ts";

const BIGINT_EXTENSION = 0x42;

/** Tags for what is no object, such as -0, may stand one level below the deepest. */
const DEEPEST_STORED = DEEPEST + 1;

export function corrupt(reason: string): CheckpointError {
	return new CheckpointError("CORRUPT", `A stored value can't be decoded: ${reason}.`);
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
		switch (head) {
			case 0xc0:
			case 0xc2:
			case 0xc3:
				return;
			case 0xcc:
			case 0xd0:
				return this.#advance(1);
			case 0xcd:
			case 0xd1:
				return this.#advance(2);
			case 0xce:
			case 0xd2:
				return this.#advance(4);
			case 0xcb:
			case 0xcf:
			case 0xd3:
				return this.#advance(8);
			case 0xc4:
			case 0xd9:
				return this.#advance(this.#length(1));
			case 0xc5:
			case 0xda:
				return this.#advance(this.#length(2));
			case 0xc6:
			case 0xdb:
				return this.#advance(this.#length(4));
			case 0xdc:
			case 0xdd:
				return this.#skipArray(this.#length(head === 0xdc ? 2 : 4), depth);
			case 0xde:
			case 0xdf:
				return this.#skipMap(this.#length(head === 0xde ? 2 : 4), depth);
			case 0xc7:
			case 0xc8:
			case 0xc9:
				return this.#skipBigInt(this.#length(1 << (head - 0xc7)));
			case 0xd4:
				if (this.#isUndefined(this.#at - 1)) return this.#advance(2);
				return this.#skipBigInt(1);
			case 0xd5:
			case 0xd6:
			case 0xd7:
			case 0xd8:
				return this.#skipBigInt(1 << (head - 0xd4));
			default:
				throw corrupt(`unknown type byte ${head}`);
		}
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

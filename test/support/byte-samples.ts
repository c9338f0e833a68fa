/** Mulberry32: numbers from 0 up to 1, the same for the same seed. */
export function random(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), state | 1);
		mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
}

/** Bytes without any pattern. */
export function noise(length: number, seed: number): Uint8Array {
	const next = random(seed);
	return Uint8Array.from({ length }, () => next() * 256);
}

export function concat(...parts: Uint8Array[]): Uint8Array {
	return new Uint8Array(Buffer.concat(parts));
}

/** `bytes` with `length` of them at `at` replaced by `fill`. */
export function splice(
	bytes: Uint8Array,
	at: number,
	length: number,
	fill: Uint8Array = new Uint8Array(0),
): Uint8Array {
	return concat(bytes.subarray(0, at), fill, bytes.subarray(at + length));
}

export function repeat(bytes: Uint8Array, times: number): Uint8Array {
	return concat(...Array.from({ length: times }, () => bytes));
}

/** A chat as text: messages alike in all but a few characters. */
export function chat(messages: number, content: (n: number) => string = (n) => `answer ${n}`): Uint8Array {
	const items = Array.from({ length: messages }, (_, n) => ({
		id: `message ${n}`,
		type: n % 2 === 0 ? "human" : "ai",
		content: content(n),
		additional_kwargs: {},
		response_metadata: { model: "model", finish_reason: "stop" },
	}));
	return new TextEncoder().encode(JSON.stringify(items));
}

/** Numbers that are reserved at a time. */
const BLOCK = 4096;
/** Left of a block when the next one is asked for: enough for what is put until it comes. */
const LOW = 1024;

/** Hands out numbers that are reserved ahead of need, so that hardly a call has to wait for a reservation. */
export class IdStash {
	readonly #reserve: (count: number) => Promise<number>;
	#next = 0;
	#end = 0;
	/** The block after this one, while it is on its way. */
	#coming: Promise<number | undefined> | undefined;

	/** @param reserve answers the first of `count` numbers in a row that nobody else gets */
	constructor(reserve: (count: number) => Promise<number>) {
		this.#reserve = reserve;
	}

	/** The first of `count` numbers in a row. */
	async take(count: number): Promise<number> {
		if (count > LOW) return this.#reserve(count);
		while (this.#end - this.#next < count) {
			const coming = this.#coming ?? this.#reserve(BLOCK);
			this.#coming = undefined;
			const first = (await coming) ?? (await this.#reserve(BLOCK));
			// Another caller may have been served while this one waited: numbers that are left over are lost, not repeated.
			this.#next = first;
			this.#end = first + BLOCK;
		}
		this.#next += count;
		if (this.#end - this.#next < LOW) this.#coming ??= this.#reserve(BLOCK).catch(() => undefined);
		return this.#next - count;
	}
}

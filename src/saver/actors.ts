import type { RunnableConfig } from "@langchain/core/runnables";

/**
 * Numbers the runs and state updates that call a saver. Later ones have greater numbers, also across processes whose
 * clocks agree. Whatever the clocks say, a run has a greater number than those whose writes it has read.
 */
export class Actors {
	readonly #known = new WeakMap<object, number>();
	#last = 0;

	/** All calls of one run carry the same metadata object, those of a state update the same configurable. */
	numberOf(config: RunnableConfig): number {
		const key = keyOf(config);
		const known = this.#known.get(key);
		if (known !== undefined) return known;
		this.#last = Math.max(this.#last + 1, Date.now());
		this.#known.set(key, this.#last);
		return this.#last;
	}

	/** The number of a run or update that has called before. */
	knownNumberOf(config: RunnableConfig): number | undefined {
		return this.#known.get(keyOf(config));
	}

	/** To be called with what is read: whoever goes on from there comes after it. */
	follow(actor: number): void {
		this.#last = Math.max(this.#last, actor);
	}

	/** A state update ends with its put: the next one may come with the same config. */
	end(config: RunnableConfig): void {
		this.#known.delete(keyOf(config));
	}
}

function keyOf(config: RunnableConfig): object {
	return config.metadata ?? config.configurable ?? config;
}

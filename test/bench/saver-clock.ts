import { now } from "./clock.ts";
import type { Saver } from "./workload.ts";

const METHODS = ["getTuple", "put", "putWrites", "getDeltaChannelHistory"] as const;

/** Counts the time in which calls of a saver are under way; several at once count once. */
export class SaverClock {
	elapsed = 0;
	#running = 0;
	#since = 0;

	constructor(saver: Saver) {
		for (const method of METHODS) {
			const call = saver[method].bind(saver) as (...args: unknown[]) => Promise<unknown>;
			Object.assign(saver, { [method]: (...args: unknown[]) => this.#count(() => call(...args)) });
		}
	}

	async #count<T>(call: () => Promise<T>): Promise<T> {
		if (this.#running++ === 0) this.#since = now();
		try {
			return await call();
		} finally {
			if (--this.#running === 0) this.elapsed += now() - this.#since;
		}
	}
}

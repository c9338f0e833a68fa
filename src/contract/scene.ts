import { Thread } from "./thread.ts";
import type { ContractSaver, SaverSetup } from "./types.ts";

/** Checkpoint ids in the form of uuid6, whose order is that of `n`. */
export function checkpointId(n: number): string {
	return `1f000000-0000-6000-8000-${n.toString(16).padStart(12, "0")}`;
}

/** What one test works with: a saver over empty storage, and checkpoint ids in rising order. */
export class Scene {
	readonly saver: ContractSaver;
	readonly #reopen: SaverSetup["reopen"];
	readonly #savers: ContractSaver[];
	#lastId = 0;

	constructor(saver: ContractSaver, reopen?: SaverSetup["reopen"]) {
		this.saver = saver;
		this.#reopen = reopen;
		this.#savers = [saver];
	}

	/** A checkpoint id greater than all before. */
	readonly nextId = (): string => {
		this.#lastId += 1;
		return checkpointId(this.#lastId);
	};

	/** A thread of the saver; nothing is stored yet. */
	readonly thread = (threadId = "thread", ns = ""): Thread => new Thread(this.saver, threadId, ns, this.nextId);

	/** Another saver over the same storage, or the same saver where storage can't be opened twice. */
	async reopen(): Promise<ContractSaver> {
		if (this.#reopen === undefined) return this.saver;
		const saver = await this.#reopen();
		this.#savers.push(saver);
		return saver;
	}

	async close(): Promise<void> {
		for (const saver of this.#savers) await saver.close?.();
	}
}

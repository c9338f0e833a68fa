import { MemoryStorage } from "../../src/storage/memory-storage.ts";
import type { PutBatch, PutResult } from "../../src/storage/storage.ts";

/**
 * Stores after a while, and not in the order of the calls, as a busy database server may. Only the calls of one task at
 * one checkpoint keep their order.
 */
export class OvertakingStorage extends MemoryStorage {
	readonly #random: () => number;
	readonly #lastOfTask = new Map<string, Promise<unknown>>();

	constructor(random: () => number) {
		super();
		this.#random = random;
	}

	override async put(batch: PutBatch): Promise<PutResult | undefined> {
		const [write] = batch.writes;
		const task = JSON.stringify([batch.threadId, write?.ns, write?.id, write?.taskId]);
		const earlier = write && this.#lastOfTask.get(task);
		const turn = new Promise((resolve) => setTimeout(resolve, this.#random() * 5)).then(() => earlier);
		this.#lastOfTask.set(task, turn);
		await turn;
		return super.put(batch);
	}
}

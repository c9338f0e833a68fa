import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import type { PutBatch, PutResult } from "../../src/storage/storage.ts";

/** Stores after a while, and not in the order of the calls, as a busy database server may. */
export class OvertakingStorage extends MemoryStorage {
	readonly #random: () => number;

	constructor(random: () => number) {
		super();
		this.#random = random;
	}

	override async put(batch: PutBatch): Promise<PutResult | undefined> {
		await new Promise((resolve) => setTimeout(resolve, this.#random() * 5));
		return super.put(batch);
	}
}

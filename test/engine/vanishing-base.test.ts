import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { DeltaSaver } from "../../src/index.ts";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import type { BlobRow } from "../../src/storage/storage.ts";

/** As while another process removes a chain of blobs, a part at a time: the oldest is gone before those that build on it. */
class VanishingStorage extends MemoryStorage {
	isVanishing = false;

	override async getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		const rows = await super.getBlobs(ids);
		return this.isVanishing ? rows.filter(({ base }) => base !== undefined) : rows;
	}
}

const logOf = (step: number) => Array.from({ length: 40 + step }, (_, n) => `entry ${n}: ${"x".repeat(100)}`);

it("a put whose parent's value can't be read any more stores the value whole", async () => {
	const storage = new VanishingStorage();
	let config: object = { configurable: { thread_id: "thread" } };
	for (let step = 0; step < 6; step++) {
		storage.isVanishing = step === 4;
		// One that remembers nothing has to read what it builds on.
		const saver = new DeltaSaver(storage, { cacheBytes: 0 });
		const checkpoint = {
			...emptyCheckpoint(),
			id: uuid6(step),
			channel_values: { log: logOf(step) },
			channel_versions: { log: step + 1 },
		};
		config = await saver.put(config, checkpoint, { source: "loop", step, parents: {} }, { log: step + 1 });
		storage.isVanishing = false;
		expect((await saver.getTuple(config))?.checkpoint.channel_values.log).toEqual(logOf(step));
	}
});

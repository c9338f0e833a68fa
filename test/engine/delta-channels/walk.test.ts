import { DeltaSaver } from "../../../src/saver/delta-saver.ts";
import { MemoryStorage } from "../../../src/storage/memory/storage.ts";
import { override } from "../../support/shared-memory.ts";

const configAt = (id?: number) => ({
	configurable: { thread_id: "thread", checkpoint_ns: "", checkpoint_id: id === undefined ? undefined : idOf(id) },
	metadata: {},
});
const idOf = (n: number) => `1f000000-0000-6000-8000-${String(n).padStart(12, "0")}`;

/** A thread whose channel `log` is rebuilt from a write at each step, and whose counters promise a short way to its start. */
async function fill(saver: DeltaSaver, steps: number): Promise<void> {
	const run = { metadata: {} };
	for (let n = 0; n < steps; n++) {
		const config = { ...configAt(n === 0 ? undefined : n - 1), ...run };
		const checkpoint = {
			v: 4,
			id: idOf(n),
			ts: "",
			channel_values: {},
			channel_versions: { log: n + 1 },
			versions_seen: {},
		};
		const metadata = { source: "loop" as const, step: n, parents: {}, counters_since_delta_snapshot: { log: [0, 0] } };
		await saver.put(config, checkpoint, metadata as never, {});
		await saver.putWrites({ ...configAt(n), ...run }, [["log", n]], `task ${n}`, "~path");
	}
}

async function historyOf(saver: DeltaSaver, id: number): Promise<unknown[]> {
	const { log } = await saver.getDeltaChannelHistory({ config: configAt(id), channels: ["log"] });
	return log!.writes.map(([, , value]) => value);
}

describe("a walk", () => {
	it("begins anew if something is removed between two of its pages", async () => {
		const storage = new MemoryStorage();
		const other = new DeltaSaver(storage);
		await fill(other, 40);
		const expected = await historyOf(new DeltaSaver(storage), 39);
		expect(expected).toEqual(Array.from({ length: 39 }, (_, n) => n));
		let reads = 0;
		const interrupted = override(storage, {
			readPath: async (key, limit) => {
				if (++reads === 2) await other.prune(["thread"], { keepLast: 1 });
				return storage.readPath(key, limit);
			},
		});
		const saver = new DeltaSaver(interrupted);
		// So that the length of the first page is that of the counters.
		await saver.getTuple(configAt(39));
		expect(await historyOf(saver, 39)).toEqual(expected);
		expect(reads).toBeGreaterThan(2);
	});
});

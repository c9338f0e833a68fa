import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { SlowSerde } from "./serdes.ts";
import { TASK, type Thread } from "./thread.ts";
import type { ContractSaver } from "./types.ts";

/** What may have happened to a thread, or happen to it, when the next checkpoint is put. */
const MAINTENANCE: Record<string, (saver: ContractSaver, threadId: string) => Promise<unknown>> = {
	prune: (saver, threadId) => saver.prune([threadId]),
	deleteForRuns: (saver, threadId) => saver.deleteForRuns([`first of ${threadId}`]),
	copyThread: (saver, threadId) => saver.copyThread(threadId, `copy of ${threadId}`),
};

/** Everything is taken as it is at the time of the call, for the caller goes on with the same objects. */
export function callTimeRules(test: RuleTest): void {
	test("SER-1: put stores what its arguments were when it was called", async ({ thread }) => {
		await assertPutAtCallTime(thread(), await putParent(thread()));
	});

	test.opening("SER-1: put does so with a slow serializer too", async (open) => {
		const { thread } = await open(new SlowSerde());
		await assertPutAtCallTime(thread(), await putParent(thread()));
	});

	for (const [name, maintain] of Object.entries(MAINTENANCE)) {
		test(`SER-1: put does so after ${name} too`, async ({ saver, thread }) => {
			const parent = await putParent(thread());
			await maintain(saver, "thread");
			await assertPutAtCallTime(thread(), parent);
		});

		test(`SER-1: put does so beside ${name} too`, async ({ saver, thread }) => {
			for (let turns = 0; turns < 60; turns += 3) {
				const place = thread(`thread ${turns}`);
				const parent = await putParent(place);
				const maintained = maintain(saver, place.threadId);
				for (let turn = 0; turn < turns; turn++) await null;
				await Promise.all([assertPutAtCallTime(place, parent), maintained]);
			}
		});
	}

	test("SER-1: a list that the caller goes on appending to is stored at its length of each call", async (scene) => {
		const thread = scene.thread();
		const list: { n: number }[] = [];
		const ids: string[] = [];
		const puts: Promise<unknown>[] = [];
		for (let n = 0; n < 20; n++) {
			list.push({ n });
			const args = thread.draft({ parent: ids.at(-1), values: { list } });
			ids.push(args[1].id);
			puts.push(thread.saver.put(...args));
			(list[0] as { n: number }).n = 100 + n;
		}
		await Promise.all(puts);
		for (const [n, id] of ids.entries()) {
			const expected = Array.from({ length: n + 1 }, (_, i) => ({ n: i === 0 && n > 0 ? 99 + n : i }));
			assert.deepEqual(await thread.values(id), { list: expected });
		}
	});

	test("SER-1: putWrites stores what its arguments were when it was called", assertWritesAtCallTime);
	test.opening("SER-1: putWrites does so with a slow serializer too", async (open) =>
		assertWritesAtCallTime(await open(new SlowSerde())),
	);
}

const parentValues = () => ({
	list: [{ n: 1 }],
	map: { a: 1 },
	long: ["x".repeat(300)],
	fixed: { items: ["f".repeat(300)] },
});

/** A checkpoint to put a child on, and an older one of another run. */
async function putParent(thread: Thread): Promise<string> {
	const root = await thread.put({ values: parentValues(), metadata: { run_id: `first of ${thread.threadId}` } });
	const versions = { list: 2, map: 2, long: 2, fixed: 2 };
	return thread.put({ parent: root, values: parentValues(), versions });
}

/** Puts a child and changes every argument before the answer is there. One of its channels is that of the parent. */
async function assertPutAtCallTime(thread: Thread, parent: string): Promise<void> {
	const { fixed } = parentValues();
	const values = {
		list: [{ n: 1 }, { n: 2 }],
		map: { a: 1, b: { c: 2 } } as Record<string, unknown>,
		long: ["x".repeat(300), "y"],
		fixed,
	};
	const newVersions: Record<string, number> = { list: 3, map: 3, long: 3 };
	const draft = { parent, values, versions: { ...newVersions, fixed: 2 }, newVersions };
	const args = thread.draft({ ...draft, seen: { node: { list: 1 } }, metadata: { nested: { list: [1] } } });
	const expected = structuredClone(args);
	const promise = thread.saver.put(...args);
	const [config, checkpoint, metadata] = args;
	(values.list[0] as { n: number }).n = 99;
	values.list.push({ n: 98 });
	values.map.late = 97;
	values.long.length = 0;
	fixed.items.push("changed");
	Object.assign(checkpoint.channel_values, { added: 96 });
	checkpoint.channel_versions.list = 95;
	(checkpoint.versions_seen.node as Record<string, number>).list = 94;
	(metadata as unknown as { nested: { list: number[] } }).nested.list.push(93);
	metadata.step = 92;
	newVersions.other = 91;
	const elsewhere = { thread_id: "changed", checkpoint_ns: "changed", checkpoint_id: "changed" };
	Object.assign(config.configurable as object, elsewhere);
	Object.assign(checkpoint, { id: "changed", ts: "changed" });
	assert.deepEqual(await promise, thread.config(expected[1].id));
	const tuple = await thread.read(expected[1].id);
	assert.deepEqual(tuple.checkpoint, expected[1]);
	assert.deepEqual(tuple.metadata, expected[2]);
	// Maintenance that comes after the put may have removed its parent.
	if (tuple.parentConfig !== undefined) assert.deepEqual(tuple.parentConfig, thread.config(parent));
	else assert.equal(await thread.saver.getTuple(thread.config(parent)), undefined);
}

async function assertWritesAtCallTime({ saver, thread }: Scene): Promise<void> {
	const id = await thread().put();
	const list = [{ n: 1 }];
	const writes: [string, unknown][] = [
		["list", list],
		["text", "x"],
	];
	const config = thread().config(id);
	const promise = saver.putWrites(config, writes, TASK);
	(list[0] as { n: number }).n = 99;
	list.push({ n: 98 });
	(writes[1] as [string, unknown])[1] = "changed";
	writes.push(["late", 97]);
	Object.assign(config.configurable, { thread_id: "changed", checkpoint_id: "changed" });
	await promise;
	assert.deepEqual(await thread().pending(id), [
		[TASK, "list", [{ n: 1 }]],
		[TASK, "text", "x"],
	]);
}

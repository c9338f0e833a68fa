import assert from "node:assert/strict";
import { assertSurvivorsUnchanged, readThread } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import { collect, type Draft, type Thread } from "./thread.ts";

/** Deleting and copying beside puts: every put is stored whole, every deletion leaves what it should. */
export function raceRules(test: RuleTest): void {
	test("ORD-4: puts beside prune keep every value they were given", async ({ saver, thread }) => {
		const { kept, expected } = await putBeside(thread(), () => saver.prune(["thread"], { keepLast: 2 }));
		for (const id of kept) assert.deepEqual(await thread().values(id), expected.get(id));
		assert.deepEqual(await thread().values(), [...expected.values()].at(-1));
	});

	test("ORD-4: puts beside deleteForRuns keep every value they were given", async ({ saver, thread }) => {
		const { kept, expected } = await putBeside(thread(), (n) => saver.deleteForRuns([`run ${n - 3}`]));
		for (const id of kept) assert.deepEqual(await thread().values(id), expected.get(id));
		assert.deepEqual(await thread().values(), [...expected.values()].at(-1));
	});

	test("ORD-4: puts go on rightly when another saver on the storage prunes and deletes", async (scene) => {
		const thread = scene.thread();
		const other = await scene.reopen();
		const maintain = async (n: number) => {
			if (n % 3 === 1) await other.prune(["thread"], { keepLast: 3 });
			if (n % 3 === 2) await other.deleteForRuns([`run ${n - 2}`]);
		};
		const { kept, expected } = await putBeside(thread, () => Promise.resolve(), maintain);
		for (const id of kept)
			for (const side of [thread, thread.through(other)]) assert.deepEqual(await side.values(id), expected.get(id));
	});

	test("ORD-4: a fork put beside the pruning of its parent keeps every value it was given", async ({
		saver,
		thread,
	}) => {
		for (let turns = 0; turns < 60; turns += 3) {
			const place = thread(`thread ${turns}`);
			const { fork, values } = await putTrunk(place);
			const pruned = saver.prune([place.threadId]);
			for (let turn = 0; turn < turns; turn++) await null;
			const [id] = await Promise.all([place.put(fork), pruned]);
			if (await place.has(id)) assert.deepEqual(await place.values(id), values);
		}
	});

	test("ORD-4: a fork of what another saver has pruned keeps every value it was given", async (scene) => {
		const { fork, values } = await putTrunk(scene.thread());
		await (await scene.reopen()).prune(["thread"]);
		const id = await scene.thread().put(fork);
		assert.deepEqual(await scene.thread().values(id), values);
	});

	for (const first of ["prune", "deleteForRuns"] as const) {
		test(`ORD-4: ${first} and then the other at once leave what both of them leave`, async (scene) => {
			const other = await scene.reopen();
			for (let turns = 0; turns < 90; turns += 7) {
				const thread = scene.thread(`thread ${turns}`);
				const ids = await putRuns(thread);
				const before = await readThread(scene.saver, thread.threadId, ["log"]);
				const calls = {
					prune: () => scene.saver.prune([thread.threadId], { keepLast: 2 }),
					deleteForRuns: () => other.deleteForRuns([1, 3, 5, 7, 9].map((n) => `run ${n} of thread ${turns}`)),
				};
				const started = calls[first]();
				for (let turn = 0; turn < turns; turn++) await null;
				await Promise.all([started, calls[first === "prune" ? "deleteForRuns" : "prune"]()]);
				const after = await readThread(scene.saver, thread.threadId, ["log"]);
				assertSurvivorsUnchanged(before, after);
				assert.deepEqual(
					after.map(({ id }) => id),
					[ids[11], ids[10]],
				);
			}
		});
	}

	test("ORD-4: a copy made beside puts is a state that the thread was in", async ({ saver, thread }) => {
		await putBeside(thread(), (n) => saver.copyThread("thread", `copy ${n}`));
		const source = await readThread(saver, "thread");
		for (let n = 0; n < 25; n++) {
			const copy = await readThread(saver, `copy ${n}`);
			assert.ok(copy.length >= n && copy.length <= n + 1, `copy ${n} has ${copy.length} checkpoints`);
			assertSurvivorsUnchanged(source, copy);
		}
	});

	test("ORD-4: a thread deleted beside puts is never half there", async ({ saver, thread }) => {
		const { expected } = await putBeside(thread(), () => saver.deleteThread("thread"));
		for (const { checkpoint } of await collect(saver.list({})))
			assert.deepEqual(checkpoint.channel_values, expected.get(checkpoint.id));
	});
}

/** Grows a thread, one put at a time, with a call started together with each put and one made after it. */
async function putBeside(
	thread: Thread,
	beside: (n: number) => Promise<unknown>,
	after: (n: number) => Promise<unknown> = () => Promise.resolve(),
) {
	const expected = new Map<string, { list: string[]; fixed: string }>();
	let parent: string | undefined;
	for (let n = 0; n < 25; n++) {
		const values = {
			list: Array.from({ length: n + 1 }, (_, i) => `item ${i} of a list that grows`),
			fixed: "f".repeat(300),
		};
		const versions = { list: n + 1, fixed: 1 };
		const newVersions = n === 0 ? versions : { list: n + 1 };
		const args = thread.draft({ parent, values, versions, newVersions, metadata: { run_id: `run ${n}` } });
		await Promise.all([thread.saver.put(...args), beside(n)]);
		await after(n);
		parent = args[1].id;
		expected.set(parent, values);
	}
	return { expected, kept: await thread.ids() };
}

/** Three checkpoints, and a draft that carries a channel over from the first of them and changes another. */
async function putTrunk(thread: Thread) {
	const fixed = "f".repeat(300);
	const list = Array.from({ length: 20 }, (_, n) => `item ${n} of a list`);
	const ids = await thread.chain(3, (n) => ({
		values: { fixed: n === 0 ? fixed : `${n}`, list: n === 0 ? list : [`${n}`] },
		versions: { fixed: n + 1, list: n + 1 },
	}));
	const values = { fixed, list: [...list, "of the fork"] };
	const fork: Draft = { parent: ids[0], values, versions: { fixed: 1, list: 2 }, newVersions: { list: 2 } };
	return { fork, values };
}

/** Twelve checkpoints of as many runs, with a list that grows and a delta channel. */
async function putRuns(thread: Thread): Promise<string[]> {
	const ids = await thread.chain(12, (n) => ({
		values: { list: Array.from({ length: n + 1 }, (_, i) => `item ${i} of a list that grows`) },
		versions: { list: n + 1, log: n + 1 },
		metadata: { run_id: `run ${n} of ${thread.threadId}` },
	}));
	for (const id of ids) await thread.write(id, [["log", id]]);
	return ids;
}

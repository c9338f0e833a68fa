import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";

const NOTHING = {
	threads: 0,
	checkpoints: 0,
	writes: 0,
	blobs: { whole: 0, patched: 0 },
	bytes: { checkpoints: 0, blobs: 0, writes: 0 },
	channels: [],
};

/** stats counts what is stored, and nothing is stored that nobody can read. */
export function statsRules(test: RuleTest): void {
	test("STATS-COUNT: an empty store has nothing", async ({ saver }) => {
		assert.deepEqual(await saver.stats(), NOTHING);
	});

	test("STATS-COUNT: threads, checkpoints and writes are counted", async ({ saver, thread, nextId }) => {
		const ids = await thread("a").chain(3);
		await thread("a", "child:1").chain(2);
		await thread("b").put();
		await thread("a").write(ids[0] as string, [
			["x", 1],
			["y", 2],
			["__error__", "e"],
		]);
		await thread("a").write(nextId(), [["x", 1]]);
		await thread("a").put({ id: ids[0], parent: ids[0] });
		const { threads, checkpoints, writes } = await saver.stats();
		assert.deepEqual({ threads, checkpoints, writes }, { threads: 2, checkpoints: 6, writes: 4 });
	});

	test("STATS-COUNT: channels are named with their bytes, the largest first", async ({ saver, thread }) => {
		await thread("a").put({
			values: { small: randomText(1, 2500), large: randomText(2, 9000), middle: randomText(3, 4000) },
		});
		await thread("b").put({ values: { large: randomText(4, 9000) } });
		const { channels, bytes, blobs } = await saver.stats();
		assert.deepEqual(
			channels.map(({ channel }) => channel),
			["large", "middle", "small"],
		);
		assert.equal(channels[0]?.blobs, 2);
		assert.equal(
			channels.reduce((sum, channel) => sum + channel.bytes, 0),
			bytes.blobs,
		);
		assert.equal(
			channels.reduce((sum, channel) => sum + channel.blobs, 0),
			blobs.whole + blobs.patched,
		);
	});

	test("STATS-COUNT: bytes grow with what is stored", async ({ saver, thread }) => {
		const total = async () => Object.values((await saver.stats()).bytes).reduce((sum, bytes) => sum + bytes, 0);
		const id = await thread().put();
		const empty = await total();
		await thread().write(id, [["a", randomText(1, 3000)]]);
		const written = await total();
		await thread().put({ parent: id, values: { a: randomText(2, 3000) } });
		assert.ok(empty > 0 && written > empty + 2000 && (await total()) > written + 2000);
	});

	test("STATS-COUNT: a list that grows is stored as changes", async ({ saver, thread }) => {
		const list = Array.from({ length: 100 }, (_, n) => randomText(n, 100));
		await thread().chain(100, (n) => ({ values: { list: list.slice(0, n + 1) } }));
		const { blobs, bytes } = await saver.stats();
		assert.ok(blobs.patched > blobs.whole, `${blobs.patched} patched, ${blobs.whole} whole`);
		assert.ok(bytes.blobs < 6 * list.join("").length, `${bytes.blobs} bytes`);
	});

	test("STATS-CLEAN: deleting what was added gives the same numbers as before", async ({ saver, thread }) => {
		await thread("kept").chain(4);
		await saver.prune(["kept"], { keepLast: 2 });
		const before = await saver.stats();
		const ids = await thread("gone").chain(6, (n) => ({
			values: { list: Array(n * 5).fill("item"), text: randomText(n, 300) },
		}));
		for (const id of ids) await thread("gone").write(id, [["list", id]]);
		await saver.deleteThread("gone");
		assert.deepEqual(await saver.stats(), before);
	});

	test("STATS-CLEAN: after prune only what the kept checkpoints need is left", async ({ saver, thread }) => {
		const draft = (n: number) => ({ values: { list: Array.from({ length: n + 1 }, (_, i) => randomText(i, 50)) } });
		const ids = await thread("pruned").chain(40, draft);
		await saver.prune(["pruned"]);
		const pruned = await saver.stats();
		assert.deepEqual([pruned.checkpoints, pruned.writes], [1, 0]);
		await saver.deleteThread("pruned");
		await thread("fresh").put({ id: ids[39], ...draft(39) });
		const fresh = await saver.stats();
		assert.ok(pruned.bytes.blobs <= 2 * fresh.bytes.blobs, `${pruned.bytes.blobs} bytes for ${fresh.bytes.blobs}`);
	});

	test("STATS-CLEAN: replaced values of a repeated put are not kept", async ({ saver, thread }) => {
		const id = await thread().put({ values: { text: randomText(0, 3000) } });
		const before = await saver.stats();
		for (let n = 1; n < 20; n++)
			await thread().put({ id, parent: id, values: { text: randomText(n, 3000) }, versions: { text: n + 1 } });
		const after = await saver.stats();
		assert.deepEqual([after.checkpoints, after.blobs], [before.checkpoints, before.blobs]);
		assert.ok(after.bytes.blobs < 2 * before.bytes.blobs);
	});

	test("STATS-CLEAN: whatever was done to them, threads that are deleted leave nothing", async ({ saver, thread }) => {
		const ids = await thread("a").chain(20, (n) => ({
			values: { list: Array.from({ length: n }, (_, i) => randomText(i, 40)) },
			versions: { list: n + 1, log: n + 1 },
			metadata: { run_id: `run ${n % 4}` },
		}));
		for (const id of ids) await thread("a").write(id, [["log", id]]);
		await saver.copyThread("a", "b");
		await saver.copyThread("a", "c", { upTo: ids[9] as string });
		await saver.copyThread("b", "d", { latestOnly: true });
		await saver.deleteForRuns(["run 1", "run 2"]);
		await saver.prune(["b"], { keepLast: 3 });
		await thread("b").put({ parent: ids[19], values: { list: ["on"] } });
		for (const threadId of ["a", "b", "c", "d"]) await saver.deleteThread(threadId);
		assert.deepEqual(await saver.stats(), NOTHING);
	});

	test("CLEAR-ALL: clear removes everything, and the saver works on", async ({ saver, thread, nextId }) => {
		const ids = await thread("a").chain(5);
		await thread("b", "child:1").chain(2);
		await thread("a").write(ids[4] as string, [["a", 1]]);
		await thread("c").write(nextId(), [["a", 1]]);
		await saver.clear();
		assert.deepEqual(await saver.stats(), NOTHING);
		assert.deepEqual((await saver.listThreads()).threads, []);
		assert.deepEqual(await thread("a").ids(), []);
		await thread("a").put({ id: ids[4], parent: ids[3], values: { a: "anew" } });
		assert.deepEqual(await thread("a").values(), { a: "anew" });
		assert.deepEqual(await thread("a").pending(), []);
		await saver.clear();
		await saver.clear();
		assert.deepEqual(await saver.stats(), NOTHING);
	});

	test("CLEAR-ALL: another saver on the same storage sees that it is empty", async (scene) => {
		await scene.thread().chain(3);
		const other = await scene.reopen();
		assert.ok(await other.getTuple(scene.thread().config()));
		await scene.saver.clear();
		assert.equal(await other.getTuple(scene.thread().config()), undefined);
		const id = await scene
			.thread()
			.through(other)
			.put({ values: { a: 1 } });
		assert.deepEqual(await scene.thread().values(id), { a: 1 });
	});
}

/** Text that does not compress and repeats nothing of another seed. */
function randomText(seed: number, length: number): string {
	let state = seed + 1;
	return Array.from({ length }, () => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return String.fromCharCode(33 + ((state >>> 8) % 90));
	}).join("");
}

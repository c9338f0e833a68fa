import assert from "node:assert/strict";
import { assertRejects, readThread } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { collect, TASK } from "./thread.ts";

/** Every call that needs the storage. */
const CALLS: Record<string, (scene: Scene, id: string) => PromiseLike<unknown>> = {
	put: ({ saver, thread }) => saver.put(...thread().draft({ values: { a: 1 } })),
	putWrites: ({ saver, thread }, id) => saver.putWrites(thread().config(id), [["a", 1]], TASK),
	getTuple: ({ saver, thread }) => saver.getTuple(thread().config()),
	get: ({ saver, thread }) => saver.get(thread().config()),
	list: ({ saver, thread }) => collect(saver.list(thread().config())),
	deleteThread: ({ saver }) => saver.deleteThread("thread"),
	getDeltaChannelHistory: ({ saver, thread }, id) =>
		saver.getDeltaChannelHistory({ config: thread().config(id), channels: ["log"] }),
	copyThread: ({ saver }) => saver.copyThread("thread", "copy"),
	prune: ({ saver }) => saver.prune(["thread"]),
	deleteForRuns: ({ saver }) => saver.deleteForRuns(["run"]),
	listThreads: ({ saver }) => saver.listThreads(),
	stats: ({ saver }) => saver.stats(),
	clear: ({ saver }) => saver.clear(),
};

/** close, and what is there when the storage is opened again. */
export function lifecycleRules(test: RuleTest): void {
	test("CLOSE-TWICE: close may be called again, also at once", async ({ saver, thread }) => {
		await thread().put();
		await Promise.all([saver.close(), saver.close()]);
		await saver.close();
	});

	test("CLOSE-TWICE: a saver that was never used can be closed", async ({ saver }) => {
		await saver.close();
	});

	for (const [name, call] of Object.entries(CALLS)) {
		test(`CLOSE-AFTER: ${name} is refused with CLOSED`, async (scene) => {
			const id = await scene.thread().put();
			await scene.saver.close();
			await assertRejects(() => call(scene, id), "CLOSED");
			await assertRejects(() => call(scene, id), "CLOSED");
		});
	}

	test("CLOSE-AFTER: getNextVersion still answers", async ({ saver }) => {
		await saver.close();
		assert.ok(saver.getNextVersion(undefined) !== undefined);
	});

	test("CLOSE-AFTER: a saver closed between two items ends the listing or refuses it", async ({ saver, thread }) => {
		await thread().chain(3);
		const listing = saver.list(thread().config());
		assert.equal((await listing.next()).done, false);
		await saver.close();
		const rest = await collect(listing).then(
			(items) => items.length,
			(error) => error.code,
		);
		assert.ok(rest === "CLOSED" || (typeof rest === "number" && rest <= 2), `got ${rest}`);
	});

	test("CLOSE-WAIT: what was accepted before close is stored", async (scene) => {
		const thread = scene.thread();
		const args = Array.from({ length: 10 }, (_, n) => thread.draft({ values: { n } }));
		const calls = args.map((one) => scene.saver.put(...one));
		calls.push(scene.saver.putWrites(thread.config(args[0]?.[1].id), [["a", 1]], TASK) as never);
		await scene.saver.close();
		await Promise.all(calls);
		const reopened = await scene.reopen();
		if (reopened === scene.saver) return;
		for (const [n, one] of args.entries()) assert.deepEqual(await thread.through(reopened).values(one[1].id), { n });
		assert.equal((await thread.through(reopened).pending(args[0]?.[1].id)).length, 1);
	});

	test("REOPEN-ALL: everything reads the same when the storage is opened again", async (scene) => {
		for (const ns of ["", "child:1"]) {
			const thread = scene.thread("thread", ns);
			const ids = await thread.chain(20, (n) => ({
				values: {
					list: Array.from({ length: n }, (_, i) => ({ i, text: `item ${i}` })),
					bytes: new Uint8Array([n]),
					none: undefined,
				},
				versions: { list: n + 1, bytes: n + 1, log: n + 1 },
				metadata: { run_id: `run ${n % 3}` },
			}));
			for (const id of ids)
				await thread.write(id, [
					["log", id],
					["__interrupt__", { id }],
				]);
		}
		await scene.saver.copyThread("thread", "copy");
		await scene.saver.prune(["copy"]);
		await scene.saver.deleteForRuns(["run 0"]);
		const read = async (saver: Scene["saver"]) => ({
			thread: await readThread(saver, "thread", ["log"]),
			copy: await readThread(saver, "copy", ["log"]),
			threads: await saver.listThreads(),
			stats: await saver.stats(),
		});
		const before = await read(scene.saver);
		assert.equal(before.thread.length, 26);
		assert.deepEqual(await read(await scene.reopen()), before);
	});

	test("REOPEN-ALL: a thread goes on where it was", async (scene) => {
		const first = scene.thread();
		const states = Array.from({ length: 12 }, (_, n) => ({
			list: Array.from({ length: n + 1 }, (_, i) => `item ${i} of a list`),
		}));
		const ids: string[] = [];
		for (const [n, values] of states.entries()) {
			const thread = n % 4 === 0 ? first.through(await scene.reopen()) : first;
			ids.push(await thread.put({ parent: ids.at(-1), values, versions: { list: n + 1 } }));
		}
		const last = first.through(await scene.reopen());
		for (const [n, id] of ids.entries()) assert.deepEqual(await last.values(id), states[n]);
		assert.deepEqual(await last.ids(), [...ids].reverse());
	});
}

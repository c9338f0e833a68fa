import assert from "node:assert/strict";
import { readThread } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";

/** deleteThread: all of one thread, nothing of another. */
export function deleteThreadRules(test: RuleTest): void {
	test("M-8: deleteThread removes every namespace, write and value of exactly that thread", async (scene) => {
		for (const threadId of ["a", "ab", "A"]) await putThread(scene, threadId);
		const [before, stats] = [await readThread(scene.saver, "ab", ["log"]), await scene.saver.stats()];
		await putThread(scene, "gone");
		await scene.saver.deleteThread("gone");
		assert.deepEqual(await scene.saver.stats(), stats);
		await scene.saver.deleteThread("a");
		assert.deepEqual(await readThread(scene.saver, "a"), []);
		assert.deepEqual(await readThread(scene.saver, "ab", ["log"]), before);
	});

	test("M-8: a thread that was pruned and copied leaves nothing when it is deleted", async (scene) => {
		await putThread(scene, "thread");
		await scene.saver.prune(["thread"], { keepLast: 2 });
		await scene.saver.copyThread("thread", "copy");
		await scene.saver.prune(["copy"]);
		for (const threadId of ["thread", "copy"]) await scene.saver.deleteThread(threadId);
		const { channels, ...stats } = await scene.saver.stats();
		assert.deepEqual(channels, []);
		assert.deepEqual(stats, {
			threads: 0,
			checkpoints: 0,
			writes: 0,
			blobs: { whole: 0, patched: 0 },
			bytes: { checkpoints: 0, blobs: 0, writes: 0 },
		});
	});

	test("M-8: deleting an unknown thread is no error", async ({ saver, thread }) => {
		const id = await thread().put();
		await saver.deleteThread("unknown");
		await saver.deleteThread("");
		assert.deepEqual(await thread().ids(), [id]);
	});

	test("M-8: a deleted thread starts anew under the same ids", async ({ saver, thread }) => {
		const [first, second] = (await thread().chain(2, (n) => ({ values: { old: n } }))) as [string, string];
		await thread().write(second, [["old", 1]]);
		await saver.deleteThread("thread");
		await thread().put({ id: second, parent: first, values: { new: 1 } });
		assert.deepEqual(await thread().values(), { new: 1 });
		assert.deepEqual(await thread().pending(), []);
		assert.deepEqual(await thread().ids(), [second]);
		assert.deepEqual(await thread().replay(second, "old"), { writes: [] });
	});
}

async function putThread({ thread, nextId }: Scene, threadId: string): Promise<void> {
	for (const ns of ["", "child:1"]) {
		const place = thread(threadId, ns);
		const ids = await place.chain(4, (n) => ({
			values: { list: Array.from({ length: n * 4 }, (_, i) => `item ${i} of ${threadId}`) },
			versions: { list: n + 1, log: n + 1 },
		}));
		for (const id of [...ids, nextId()]) await place.write(id, [["log", id]]);
	}
}

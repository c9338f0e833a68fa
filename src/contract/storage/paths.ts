import assert from "node:assert/strict";
import type { CheckpointKey, Storage } from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertSameRows, plainKey, plainRow } from "./plain.ts";
import { key, row } from "./storage-scene.ts";

/** getPath and getChildren: up and down the tree of parents. */
export function pathRules(test: StorageTest): void {
	test("PATH-ORDER: a path goes from a row to its parent and so on", async ({ storage, putRows }) => {
		const rows = [row("a"), row("b", { parentId: "a" }), row("c", { parentId: "b" }), row("d", { parentId: "b" })];
		await putRows(...rows);
		const path = await storage.getPath(key("c"), 10);
		assert.deepEqual(path.map(plainRow), [rows[2], rows[1], rows[0]]);
		assert.deepEqual(path[0], await storage.getCheckpoint(key("c")));
	});

	test("PATH-ORDER: a parent may have a greater id", async ({ storage, putRows }) => {
		await putRows(row("z"), row("a", { parentId: "z" }));
		assert.deepEqual(await pathOf(storage, key("a")), ["a", "z"]);
	});

	test("PATH-LIMIT: a path has at most as many rows as are asked for", async ({ storage, chain }) => {
		const ids = (await chain(20)).reverse();
		for (const limit of [0, 1, 7, 19, 20, 21])
			assert.deepEqual(await pathOf(storage, key(ids[0] as string), limit), ids.slice(0, limit));
	});

	test("PATH-END: a row that is missing ends the path", async ({ storage, putRows, remove }) => {
		await putRows(row("a"), row("b", { parentId: "a" }), row("c", { parentId: "b" }), row("e", { parentId: "never" }));
		await remove({ checkpoints: [key("b")] });
		assert.deepEqual(await pathOf(storage, key("c")), ["c"]);
		assert.deepEqual(await pathOf(storage, key("e")), ["e"]);
		for (const missing of [key("b"), key("a", "x"), key("a", "", "other")])
			assert.deepEqual(await storage.getPath(missing, 10), []);
	});

	test("PATH-END: a row that was seen before ends the path", async ({ storage, putRows }) => {
		await putRows(row("self", { parentId: "self" }));
		await putRows(
			row("a", { parentId: "c" }),
			row("b", { parentId: "a" }),
			row("c", { parentId: "b" }),
			row("d", { parentId: "c" }),
		);
		assert.deepEqual(await pathOf(storage, key("self")), ["self"]);
		assert.deepEqual(await pathOf(storage, key("b")), ["b", "a", "c"]);
		assert.deepEqual(await pathOf(storage, key("d")), ["d", "c", "b", "a"]);
	});

	test("PATH-HERE: a path stays in its thread and namespace", async ({ storage, putRows }) => {
		await putRows(row("a", { ns: "x" }), row("a", { threadId: "other" }), row("b", { parentId: "a" }));
		assert.deepEqual(await pathOf(storage, key("b")), ["b"]);
	});

	test("PATH-LONG: a path of 600 rows comes whole", async ({ storage, chain }) => {
		const ids = await chain(600);
		assert.deepEqual(await pathOf(storage, key(ids.at(-1) as string), 10_000), ids.reverse());
	});

	test("PATH-CHANGED: a relinked row leads to its new parent, and is its child", async ({ storage, chain, remove }) => {
		const [a, b, c, d] = (await chain(4)) as [string, string, string, string];
		await remove({ checkpoints: [key(b), key(c)], relink: [{ key: key(d), parentId: a }] });
		assert.deepEqual(await pathOf(storage, key(d)), [d, a]);
		assert.deepEqual((await storage.getChildren("thread", "", [a])).map(plainKey), [key(d)]);
		assert.deepEqual(await storage.getChildren("thread", "", [c]), []);
	});

	test("CHILDREN-OF: the children of several rows come in one answer, each once", async ({ storage, putRows }) => {
		const rows = [row("a"), row("b", { parentId: "a" }), row("c", { parentId: "a" }), row("d", { parentId: "b" })];
		await putRows(...rows, row("e", { parentId: "c" }), row("f", { parentId: "never put" }));
		const children = async (...parents: string[]) => (await storage.getChildren("thread", "", parents)).map(plainRow);
		assertSameRows(await children("a", "b"), rows.slice(1));
		assertSameRows(await children("a", "a"), rows.slice(1, 3));
		assertSameRows(await children("never put"), [row("f", { parentId: "never put" })]);
		for (const parents of [[], ["d"], ["nothing"], [""]]) assert.deepEqual(await children(...parents), []);
	});

	test("CHILDREN-OF: children elsewhere and of neighbours are not answered", async ({ storage, putRows }) => {
		await putRows(row("1", { ns: "x", parentId: "a" }), row("1", { threadId: "other", parentId: "a" }));
		await putRows(row("2", { parentId: "ab" }), row("3", { parentId: "A" }), row("4"));
		assert.deepEqual(await storage.getChildren("thread", "", ["a"]), []);
		assert.deepEqual((await storage.getChildren("thread", "x", ["a"])).map(plainKey), [key("1", "x")]);
	});

	test("CHILDREN-OF: a row can be its own child", async ({ storage, putRows }) => {
		const id = checkpointId(1);
		await putRows(row(id, { parentId: id }));
		assert.deepEqual((await storage.getChildren("thread", "", [id])).map(plainKey), [key(id)]);
	});
}

async function pathOf(storage: Storage, key: CheckpointKey, limit = 100): Promise<string[]> {
	return (await storage.getPath(key, limit)).map(({ id }) => id);
}

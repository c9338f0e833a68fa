import assert from "node:assert/strict";
import type { PathReading } from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertBases, assertRows, assertWrites, compareKeys } from "./plain.ts";
import { ALL, findRow, pathIds } from "./reads.ts";
import { deltaBase, key, row, write } from "./storage-scene.ts";

/** readPath: a checkpoint with its ancestors, and what tells how they came to be. */
export function pathRules(test: StorageTest): void {
	test("PATH-ORDER: a path goes from a row to its parent and so on", async ({ storage, putRows }) => {
		const rows = [row("a", { step: 1 }), row("b", { parentId: "a", blobs: [7] }), row("c", { parentId: "b" })];
		await putRows(...rows, row("d", { parentId: "b" }));
		const { path } = await storage.readPath(key("c"), 10);
		assertRows(path, [...rows].reverse());
		for (const found of path) assert.deepEqual(found, await findRow(storage, found));
	});

	test("PATH-ORDER: a parent may have a greater id", async ({ storage, putRows }) => {
		await putRows(row("z"), row("a", { parentId: "z" }));
		assert.deepEqual(await pathIds(storage, key("a")), ["a", "z"]);
	});

	test("PATH-LIMIT: a path has at most as many rows as are asked for", async ({ storage, chain }) => {
		const ids = (await chain(20)).reverse();
		for (const limit of [0, 1, 7, 19, 20, 21])
			assert.deepEqual(await pathIds(storage, key(ids[0] as string), limit), ids.slice(0, limit));
	});

	test("PATH-LONG: a path of 600 rows comes whole", async ({ storage, chain }) => {
		const ids = await chain(600);
		assert.deepEqual(await pathIds(storage, key(ids.at(-1) as string), 10_000), ids.reverse());
	});

	test("PATH-END: a row that is missing ends the path", async ({ storage, putRows, remove }) => {
		await putRows(row("a"), row("b", { parentId: "a" }), row("c", { parentId: "b" }), row("e", { parentId: "never" }));
		await remove({ checkpoints: [key("b")] });
		assert.deepEqual(await pathIds(storage, key("c")), ["c"]);
		assert.deepEqual(await pathIds(storage, key("e")), ["e"]);
		for (const missing of [key("b"), key("a", "x"), key("a", "", "other")]) {
			const { epoch: _, ...nothing } = await storage.readPath(missing, 10);
			assert.deepEqual(nothing, { path: [], siblings: [], writes: [], deltaBases: [], orphans: undefined });
		}
	});

	test("PATH-END: a row that was seen before ends the path", async ({ storage, putRows }) => {
		const links = { self: "self", a: "c", b: "a", c: "b", d: "c" };
		await putRows(...Object.entries(links).map(([id, parentId]) => row(id, { parentId })));
		assert.deepEqual(await pathIds(storage, key("self")), ["self"]);
		assert.deepEqual(await pathIds(storage, key("d")), ["d", "c", "b", "a"]);
		const { path, siblings, orphans } = await storage.readPath(key("b"), ALL);
		assert.deepEqual(
			path.map(({ id }) => id),
			["b", "a", "c"],
		);
		assert.deepEqual([siblings.map(({ id }) => id), orphans], [["d"], undefined]);
	});

	test("PATH-HERE: a path stays in its thread and namespace", async ({ storage, putRows, putWrites, put }) => {
		const elsewhere = [{ ns: "x" }, { threadId: "other" }];
		await putRows(...elsewhere.flatMap((place) => [row("a", place), row("c", { ...place, parentId: "b" })]));
		await putRows(row("b", { parentId: "a" }), row("b", { ns: "x" }));
		await putWrites(...elsewhere.flatMap((place) => [write("b", "task", 0, place), write("0", "task", 0, place)]));
		await put({ deltaBases: [deltaBase("b", "log", "elsewhere", { ns: "x" })] });
		const { epoch: _, path, ...rest } = await storage.readPath(key("b"), ALL);
		assertRows(path, [row("b", { parentId: "a" })]);
		assert.deepEqual(rest, { siblings: [], writes: [], deltaBases: [], orphans: [] });
	});

	test("PATH-WRITES: all writes and delta bases of the path come along, and no others", async (scene) => {
		const { storage, chain, putWrites, put } = scene;
		const ids = await chain(5);
		const writes = ids.flatMap((id) => [write(id, "task", 0), write(id, "task 1", -1)]);
		const again = ids.map((id) => write(id, "task", 0, { conflict: "add", generation: 1 }));
		const deltaBases = ids.flatMap((id) => [deltaBase(id, "log", id), deltaBase(id, "other", "")]);
		await putWrites(...writes);
		await putWrites(...again);
		await put({ deltaBases });
		for (const limit of [0, 1, 3, 5]) {
			const reading = await storage.readPath(key(ids[4] as string), limit);
			const isOnPath = ({ id }: { id: string }) => ids.slice(5 - limit).includes(id);
			assertWrites(reading.writes, [...writes, ...again].filter(isOnPath));
			assertBases(reading.deltaBases, deltaBases.filter(isOnPath));
		}
	});

	test("PATH-SIBLINGS: children of the path that are not on it come along, as they are, each once", async (scene) => {
		const { storage, putRows } = scene;
		const others = [row("b2", { parentId: "a", step: 2, blobs: [1, 2] }), row("0", { parentId: "b" })] as const;
		const children = [row("e", { parentId: "c" }), row("d", { parentId: "c" })];
		await putRows(row("a"), row("b", { parentId: "a" }), row("c", { parentId: "b" }), ...others, ...children);
		await putRows(row("f", { parentId: "e" }), row("g", { parentId: "never" }));
		for (const [id, limit, expected] of [
			["c", ALL, [...children, ...others]],
			["c", 2, [...children, others[1]]],
			["c", 1, children],
			["c", 0, []],
			["f", 1, []],
		] as const)
			assertRows([...(await storage.readPath(key(id), limit)).siblings].sort(compareKeys), expected);
	});

	test("PATH-CHANGED: rows that are put again, relinked and removed change the siblings of others", async (scene) => {
		const { storage, chain, putRows, remove, copy } = scene;
		const [a, b, c, d] = (await chain(4)) as [string, string, string, string];
		const childrenOf = async (id: string, threadId = "thread") =>
			(await storage.readPath(key(id, "", threadId), 1)).siblings.map((found) => found.id).sort();
		await copy("copy");
		await remove({ checkpoints: [key(c)], relinked: [row(d, { parentId: a })] });
		assert.deepEqual([await childrenOf(a), await childrenOf(b), await childrenOf(d)], [[b, d], [], []]);
		assert.deepEqual(await pathIds(storage, key(d)), [d, a]);
		await putRows(row(d, { parentId: b }));
		assert.deepEqual([await childrenOf(a), await childrenOf(b)], [[b], [d]]);
		await putRows(row(d));
		assert.deepEqual([await childrenOf(b), await pathIds(storage, key(d))], [[], [d]]);
		await remove({ checkpoints: [key(b)] });
		await putRows(row(c));
		assert.deepEqual([await childrenOf(a), await childrenOf(c)], [[], []]);
		assert.deepEqual([await childrenOf(a, "copy"), await childrenOf(c, "copy")], [[b], [d]]);
	});

	test("PATH-ORPHANS: where the path has its end, writes of smaller ids without a row come along", async (scene) => {
		const { storage, putRows, putWrites } = scene;
		const orphans = ["\u{10000}", "\uFFEE", "a", "bb", "d", checkpointId(1)];
		await putRows(row("b", { parentId: "gone" }), row("c", { parentId: "b" }), row("\u{10001}"));
		await putRows(row("a", { ns: "x" }), row("a", { threadId: "other" }));
		const writes = [...orphans, "b", "c"].flatMap((id) => [0, 1].map((idx) => write(id, `task ${idx}`, idx)));
		await putWrites(...writes, write("0", "task", 0, { ns: "x" }), write("0", "task", 0, { threadId: "other" }));
		for (const [start, limit, expected] of [
			["c", ALL, ["a", checkpointId(1)]],
			["c", 2, ["a", checkpointId(1)]],
			["c", 1, undefined],
			["b", 1, ["a", checkpointId(1)]],
			["\u{10001}", 1, orphans],
			["missing", ALL, undefined],
			["c", 0, undefined],
		] as const) {
			const { orphans: found } = await storage.readPath(key(start), limit);
			assert.equal(found === undefined, expected === undefined);
			assertWrites(
				found ?? [],
				writes.filter(({ id }) => expected?.includes(id)),
			);
		}
	});

	test("PATH-ORPHANS: a write is one as long as its checkpoint has no row", async (scene) => {
		const { storage, put, putRows, remove, copy } = scene;
		await put({ checkpoint: row("b"), writes: [write("a", "task", 0)] });
		const orphans = async (threadId = "thread") =>
			(await storage.readPath(key("b", "", threadId), ALL)).orphans?.length;
		assert.equal(await orphans(), 1);
		await copy("copy");
		await putRows(row("a"));
		assert.deepEqual([await orphans(), await orphans("copy")], [0, 1]);
		await remove({ checkpoints: [key("a")] });
		assert.equal(await orphans(), 0);
	});

	test("EPOCH-OWN: what this storage puts leaves the epoch as it is", async ({ storage, put, reopen }) => {
		await reopen();
		await put({ checkpoint: row("a") });
		const epochs = [(await storage.readPath(key("a"), 1)).epoch];
		await put({ checkpoint: row("b", { parentId: "a" }), writes: [write("b", "task", 0)] });
		epochs.push((await storage.readPath(key("b"), 2)).epoch);
		await put({ writes: [write("b", "task 1", 0)] });
		await put({ writes: [write("b", "task 1", 0, { conflict: "add" })] });
		epochs.push((await storage.readPath(key("b"), 2)).epoch);
		assert.equal(new Set(epochs).size, 1, `the epochs were ${epochs}`);
	});

	test("EPOCH-OTHERS: another number after each change of the thread by another storage", async (scene) => {
		const { storage, putRows, reopen, batch, removal } = scene;
		const other = await reopen();
		if (other === storage) return;
		const put = async (fields: Parameters<typeof batch>[0]) => other.put(await batch(fields));
		const changes: Record<string, () => Promise<unknown>> = {
			"a checkpoint": () => put({ checkpoint: row("b", { parentId: "a" }) }),
			"a write": () => put({ writes: [write("a", "task", 0)] }),
			"a write that is replaced": () => put({ writes: [write("a", "task", 0, { conflict: "replace", actor: 1 })] }),
			"a write that is added": () => put({ writes: [write("a", "task", 0, { conflict: "add" })] }),
			"a delta base": () => put({ deltaBases: [deltaBase("a", "log", "base")] }),
			"a checkpoint that is put again": () => put({ checkpoint: row("a", { step: 7 }) }),
			"a removal": async () => other.remove(await removal({ checkpoints: [key("b")] })),
			"a relinked row": async () => other.remove(await removal({ relinked: [row("a", { parentId: "z" })] })),
			"the end of the thread": () => other.removeThread("thread"),
			"its return": () => put({ checkpoint: row("a") }),
		};
		await putRows(row("a"));
		const epochs = [(await storage.readPath(key("a"), 1)).epoch];
		for (const [name, change] of Object.entries(changes)) {
			await change();
			// What this storage puts itself must not hide what the other has done.
			if (name !== "the end of the thread") await putRows(row(checkpointId(epochs.length), { ns: "x" }));
			epochs.push((await storage.readPath(key("a"), 1)).epoch);
			assert.equal(new Set(epochs).size, epochs.length, `after ${name} the epochs were ${epochs}`);
		}
	});

	test("EPOCH-MOMENT: with one epoch a path never has two contents", async (scene) => {
		await scene.putRows(row("a"));
		const [storage, other] = await scene.race();
		if (other === storage) return;
		const seen = new Map<number | string, number>();
		const look = ({ epoch, writes }: PathReading) => {
			assert.equal(writes.length, seen.get(epoch) ?? writes.length, `another content in epoch ${epoch}`);
			seen.set(epoch, writes.length);
		};
		for (let n = 1; n <= 40; n++) {
			const batch = await scene.batch({ writes: [write("a", `task ${n}`, 0)] });
			const [reading] = await Promise.all([storage.readPath(key("a"), 1), other.put(batch)]);
			look(reading);
			// Nothing happens meanwhile.
			look(await storage.readPath(key("a"), 1));
		}
	});
}

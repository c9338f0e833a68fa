import assert from "node:assert/strict";
import type { CheckpointKey, Scan } from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertBlobs, assertRows, assertWrites, plainKey } from "./plain.ts";
import { pathIds, scanKeys } from "./reads.ts";
import { blob, blobWrite, bytes, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

const uuid = "1ef4f797-8335-6428-8001-8a1503f9b875";

/** Texts that some database, escape or index takes for something else, many beside a neighbour. */
const TEXTS = [
	...["", " ", "a", "a ", "A", "ab", "a\u0000", "a\u0000b", "\u0000", "\n", "\r\n", "it's", "it''s", '"', "`", "\\"],
	...["%", "_", "a%", "*", "?", "0", "00", "0.0", "1", "1e0", "-1", "9007199254740993", "NaN", "null", "undefined"],
	...[
		"true",
		"x'00'",
		"__proto__",
		"constructor",
		"é",
		"e\u0301",
		"ﬀ",
		"中文",
		"\uFEFF",
		"\uFFFD",
		"\uFFFF",
		"🧵",
		"👨‍👩‍👧",
	],
	...["[]", "{}", "a,b", "a|b", "a:b", "a/b", uuid, uuid.toUpperCase(), uuid.replaceAll("-", ""), `${uuid} `],
	...["x".repeat(10_000), `${"x".repeat(10_000)}y`, "🧵".repeat(2_500)],
];

/** Bytes of every kind, of any length. */
function sample(length: number): Uint8Array {
	const data = new Uint8Array(length);
	for (let n = 0; n < length; n++) data[n] = n * 31 + (n >> 8);
	return data;
}

const VALUES: Record<string, () => Uint8Array> = {
	"no bytes": () => new Uint8Array(0),
	"a zero byte": () => new Uint8Array(1),
	"every byte": () => sample(256),
	"text that is not UTF-8": () => new Uint8Array([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
	digits: () => bytes("1234"),
	"a megabyte": () => sample(1 << 20),
	"a part of a larger buffer": () => sample(1_000).subarray(100, 200),
	"a Buffer": () => Buffer.from(sample(1_000)),
};

/** Bytes come back as they were given. Any text can be any id or name, and only the very same text is the same. */
export function valueRules(test: StorageTest): void {
	for (const [name, make] of Object.entries(VALUES))
		test(`VALUE-BYTES: ${name} in a head, a blob, a write and a delta base`, async (scene) => {
			const data = make();
			const expected = Uint8Array.from(data);
			const id = await scene.fresh();
			await scene.put({
				checkpoint: row("a", { head: data, blobs: [id] }),
				writes: [write("a", "task", 0, { value: data })],
				deltaBases: [{ ...key("a"), channel: "log", data }],
				blobs: [blob(id, data)],
			});
			assert.deepEqual(data, make(), "the bytes that were given have been changed");
			const { checkpoints, writes, blobs } = await scene.storage.read([key("a")], "values");
			assertRows(checkpoints, [row("a", { head: expected, blobs: [id] })]);
			assertWrites(writes, [write("a", "task", 0, { value: expected })]);
			assertBlobs(blobs, [blob(id, expected)]);
		});

	test("VALUE-NUMBER: the greatest and least numbers come back exact", async ({ storage, put, thread }) => {
		const [most, least] = [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
		const writes = [blobWrite("a", "task", most, most, { actor: most }), write("a", "task", least)];
		const blobs = [blob(most, "value", most - 1, undefined, most - 2)];
		const checkpoint = row("a", { step: most, blobs: [most, most - 1] });
		await put({ checkpoint, writes, blobs, now: most, fresh: most });
		await put({ checkpoint: row("b", { step: least }), now: most });
		await storage.read({ step: most, limit: 1 }, "values");
		await storage.read({ step: least, limit: 1 }, "values");
		const { family, stamp, updatedAt } = await thread();
		assert.deepEqual([family, stamp, updatedAt], [most, most, most]);
		assert.deepEqual(await storage.listThreads(1, { updatedAt: most, threadId: "zzz" }), [await thread()]);
	});

	test("TEXT-ANY: any text can be the id of a thread", async (scene) => {
		const { storage } = scene;
		for (const threadId of TEXTS) await putAt(scene, key("id", "", threadId));
		for (const threadId of TEXTS) await assertAlone(scene, { threadId });
		for (const threadId of TEXTS) assert.equal((await storage.removeThread(threadId)).checkpoints, 1);
	});

	test("TEXT-ANY: any text can be a namespace", async (scene) => {
		const keys = TEXTS.map((ns) => key("id", ns));
		for (const one of keys) await putAt(scene, one);
		for (const ns of TEXTS) await assertAlone(scene, { threadId: "thread", ns });
		await removeOneByOne(scene, keys);
	});

	test("TEXT-ANY: any text can be the id of a checkpoint", async (scene) => {
		const keys = TEXTS.map((id) => key(id));
		for (const one of keys) await putAt(scene, one);
		for (const one of keys) {
			assert.deepEqual(await pathIds(scene.storage, one, 5), [one.id]);
			await scene.storage.read({ before: one.id, limit: 3 }, "rows");
			await scene.storage.read({ after: one, limit: 3 }, "rows");
		}
		await removeOneByOne(scene, keys);
	});

	test("TEXT-ANY: any text can be the id of a parent", async ({ storage, putRows, remove }) => {
		await putRows(...TEXTS.map((id) => row(id)), ...TEXTS.map((parentId, n) => row(checkpointId(n), { parentId })));
		for (const [n, parentId] of TEXTS.entries()) {
			assertRows((await storage.readPath(key(parentId), 1)).siblings, [row(checkpointId(n), { parentId })]);
			assert.deepEqual(await pathIds(storage, key(checkpointId(n)), 5), [checkpointId(n), parentId]);
		}
		await remove({ relinked: TEXTS.map((_, n) => row(checkpointId(n), { parentId: TEXTS[(n + 1) % TEXTS.length] })) });
	});

	test("TEXT-ANY: any text can be the id of a task, and every name of a write", async (scene) => {
		const { storage, putWrites, remove } = scene;
		const writes = TEXTS.map((text) => write("a", text, 0, { channel: text, runId: text, type: text, taskPath: text }));
		await putWrites(...writes);
		await putWrites(...writes.map((one) => ({ ...one, value: bytes("again") })));
		assertWrites((await storage.readThread("thread")).writes, writes);
		for (const one of writes) assert.equal((await remove({ writes: [one] })).writes, 1);
	});

	test("TEXT-ANY: any text can be a run, a source and the channel of a delta base", async (scene) => {
		const { storage, putRows, put } = scene;
		const rows = TEXTS.map((text, n) => row(checkpointId(n), { runId: text, source: text }));
		await putRows(...rows);
		for (const [n, text] of TEXTS.entries()) {
			assert.deepEqual((await storage.findRuns([text])).checkpoints.map(plainKey), [key(checkpointId(n))]);
			assert.deepEqual(await scanKeys(storage, { source: text }), [key(checkpointId(n))]);
		}
		await put({ deltaBases: TEXTS.map((channel) => deltaBase("a", channel, `of ${channel}`)) });
	});

	test("TEXT-ANY: any text can be the tag of a blob", async ({ storage, put }) => {
		const first = await storage.reserveIds(TEXTS.length);
		await put({ blobs: TEXTS.map((type, n) => blob(first + n, type, undefined, type)) });
	});

	test("TEXT-ANY: a copy can be made to and from any thread", async ({ storage, putRows, copy }) => {
		await putRows(row("a"));
		for (const [n, target] of TEXTS.entries()) await copy(target, { source: TEXTS[n - 1] ?? "thread" });
		assert.equal((await storage.totals()).checkpoints, TEXTS.length + 1);
	});
}

async function putAt({ put }: StorageScene, at: CheckpointKey): Promise<void> {
	await put({ checkpoint: row(at.id, at), writes: [write(at.id, "task", 0, at)] });
}

/** A scan finds one row, with one write. */
async function assertAlone({ storage }: StorageScene, scan: Partial<Scan>): Promise<void> {
	const { checkpoints, writes } = await storage.read({ ...scan, limit: 1_000 }, "values");
	assert.deepEqual([checkpoints.length, writes.length], [1, 1], `of ${JSON.stringify(scan).slice(0, 100)}`);
	await storage.read(checkpoints, "values");
}

async function removeOneByOne({ storage, remove }: StorageScene, keys: readonly CheckpointKey[]): Promise<void> {
	for (const [n, one] of keys.entries()) {
		const { checkpoints, writes } = await remove({ checkpoints: [one] });
		assert.deepEqual([checkpoints, writes], [1, 1], `${JSON.stringify(one).slice(0, 100)} was not removed alone`);
		assert.equal((await storage.totals()).checkpoints, keys.length - n - 1);
	}
}

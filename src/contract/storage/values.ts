import assert from "node:assert/strict";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertBases, assertBlobs, assertRows, assertWrites, plainKey } from "./plain.ts";
import {
	ALL,
	basesAt,
	familyBlobs,
	findRow,
	newestRow,
	pathIds,
	scanKeys,
	scanRows,
	threadWrites,
	writesAt,
} from "./reads.ts";
import { blob, blobWrite, bytes, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

const uuid = "1ef4f797-8335-6428-8001-8a1503f9b875";

/** Texts that some database, escape or index takes for something else, many beside a neighbour. */
const TEXTS = [
	"",
	" ",
	"a",
	"a ",
	"A",
	"ab",
	"a\u0000",
	"a\u0000b",
	"\u0000",
	"it's",
	"it''s",
	'"',
	"`",
	"\\",
	"%",
	"_",
	"a%",
	"*",
	"?",
	"\n",
	"\r\n",
	"0",
	"00",
	"0.0",
	"1",
	"1e0",
	"-1",
	"9007199254740993",
	"NaN",
	"null",
	"undefined",
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
	"[]",
	"{}",
	"a,b",
	"a|b",
	"a:b",
	"a/b",
	uuid,
	uuid.toUpperCase(),
	uuid.replaceAll("-", ""),
	`${uuid} `,
	"x".repeat(10_000),
	`${"x".repeat(10_000)}y`,
	"🧵".repeat(2_500),
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
	test("TEXT-ANY: any text can be the id of a thread", async (scene) => {
		const { storage } = scene;
		for (const threadId of TEXTS) await putAll(scene, { threadId });
		for (const threadId of TEXTS) await assertAll(scene, { threadId });
		for (const threadId of TEXTS) assert.equal((await storage.removeThread(threadId)).checkpoints, 1);
		assert.equal((await storage.totals()).checkpoints, 0);
	});

	test("TEXT-ANY: any text can be a namespace", async (scene) => {
		for (const ns of TEXTS) await putAll(scene, { ns });
		for (const ns of TEXTS) await assertAll(scene, { ns });
		await removeOneByOne(
			scene,
			TEXTS.map((ns) => key("id", ns)),
		);
	});

	test("TEXT-ANY: any text can be the id of a checkpoint", async (scene) => {
		for (const id of TEXTS) await putAll(scene, { id });
		for (const id of TEXTS) {
			await assertAll(scene, { id });
			assert.deepEqual(await pathIds(scene.storage, key(id), 5), [id]);
		}
		await removeOneByOne(
			scene,
			TEXTS.map((id) => key(id)),
		);
	});

	test("TEXT-ANY: any text can be the id of a parent", async ({ storage, putRows, remove }) => {
		await putRows(...TEXTS.map((id) => row(id)), ...TEXTS.map((parentId, n) => row(checkpointId(n), { parentId })));
		for (const [n, parentId] of TEXTS.entries()) {
			assertRows((await storage.readPath(key(parentId), 1)).siblings, [row(checkpointId(n), { parentId })]);
			assert.deepEqual(await pathIds(storage, key(checkpointId(n)), 5), [checkpointId(n), parentId]);
		}
		const next = (n: number) => TEXTS[(n + 1) % TEXTS.length];
		await remove({ relinked: TEXTS.map((_, n) => row(checkpointId(n), { parentId: next(n) })) });
		for (const n of TEXTS.keys()) assert.equal((await findRow(storage, key(checkpointId(n))))?.parentId, next(n));
	});

	test("TEXT-ANY: any text can be the id of a task, and every name of a write", async ({
		storage,
		putWrites,
		remove,
	}) => {
		const writes = TEXTS.map((text) => write("a", text, 0, { channel: text, runId: text, type: text, taskPath: text }));
		await putWrites(...writes);
		await putWrites(...writes.map((one) => ({ ...one, value: bytes("again") })));
		assertWrites(await writesAt(storage, key("a")), writes);
		for (const [n, one] of writes.entries()) {
			assert.equal((await remove({ writes: [one] })).writes, 1);
			assert.equal((await threadWrites(storage, "thread")).length, writes.length - n - 1);
		}
	});

	test("TEXT-ANY: any text can be a run, a source and the channel of a delta base", async ({
		storage,
		putRows,
		remove,
	}) => {
		const rows = TEXTS.map((text, n) => row(checkpointId(n), { runId: text, source: text }));
		await putRows(...rows);
		assertRows(await scanRows(storage, { limit: ALL }), rows.reverse());
		for (const [n, text] of TEXTS.entries()) {
			assert.deepEqual((await storage.findRuns([text])).checkpoints.map(plainKey), [key(checkpointId(n))]);
			assert.deepEqual(await scanKeys(storage, { source: text }), [key(checkpointId(n))]);
		}
		const deltaBases = TEXTS.map((channel) => deltaBase("a", channel, `of ${channel}`));
		await remove({ deltaBases });
		assertBases(await basesAt(storage, key("a")), deltaBases);
	});

	test("TEXT-ANY: any text can be the tag of a blob", async ({ storage, put }) => {
		const first = await storage.reserveIds(TEXTS.length);
		await put({ blobs: TEXTS.map((type, n) => blob(first + n, type, undefined, type)) });
		const found = await storage.getBlobs(TEXTS.map((_, n) => first + n));
		assert.deepEqual(new Set(found.map(({ type }) => type)), new Set(TEXTS));
	});

	test("TEXT-ANY: a copy can be made to and from any thread", async ({ storage, putRows, copy }) => {
		const strange = TEXTS.filter((text) => text !== "thread");
		await putRows(row("a"));
		for (const [n, target] of strange.entries()) await copy(target, { source: strange[n - 1] ?? "thread" });
		assert.equal((await storage.totals()).checkpoints, strange.length + 1);
	});

	for (const [name, make] of Object.entries(VALUES))
		test(`VALUE-BYTES: ${name} in a head, a blob, a write and a delta base`, async (scene) => {
			const data = make();
			const expected = Uint8Array.from(data);
			await putEverywhere(scene, data);
			assert.deepEqual(data, make(), "the bytes that were given have been changed");
			const { storage } = scene;
			assertRows([await findRow(storage, key("a"))], [row("a", { head: expected })]);
			assertWrites(await writesAt(storage, key("a")), [write("a", "task", 0, { value: expected })]);
			assertBases(await basesAt(storage, key("a")), [{ ...key("a"), channel: "log", data: expected }]);
			const { family } = await scene.thread();
			const [listed] = await familyBlobs(storage, family);
			assert.ok(listed);
			assert.equal(scene.counted(listed).bytes, scene.counted({ bytes: expected.length }).bytes);
			assertBlobs(await storage.getBlobs([listed.id]), [blob(listed.id, expected)]);
		});

	test("VALUE-NUMBER: the greatest and least numbers come back exact", async ({ storage, put, thread }) => {
		const [most, least] = [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
		const writes = [blobWrite("a", "task", most, most, { actor: most }), write("a", "task", least)];
		await put({
			checkpoint: row("a", { step: most, blobs: [most, most - 1] }),
			writes,
			blobs: [blob(most, "value", most - 1)],
			now: most,
			fresh: most,
		});
		await put({ checkpoint: row("b", { step: least }), now: most });
		assertRows((await storage.read([key("a"), key("b")], "values")).checkpoints, [
			row("a", { step: most, blobs: [most, most - 1] }),
			row("b", { step: least }),
		]);
		assertWrites(await writesAt(storage, key("a")), writes);
		assertBlobs(await storage.getBlobs([most]), [blob(most, "value", most - 1)]);
		const { family, stamp, updatedAt } = await thread();
		assert.deepEqual([family, stamp, updatedAt], [most, most, most]);
		assert.deepEqual(await storage.listThreads(1, { updatedAt: most, threadId: "zzz" }), [await thread()]);
	});
}

type Where = { threadId?: string; ns?: string; id?: string };

function place({ threadId = "thread", ns = "", id = "id" }: Where) {
	return { threadId, ns, id };
}

async function putAll({ put }: StorageScene, where: Where): Promise<void> {
	const at = place(where);
	await put({ checkpoint: row(at.id, at), writes: [write(at.id, "task", 0, at)] });
}

/** Reads in every way that names one checkpoint. */
async function assertAll({ storage }: StorageScene, where: Where): Promise<void> {
	const at = place(where);
	const found = await findRow(storage, at);
	assert.ok(found, `the row of ${JSON.stringify(at).slice(0, 100)} is not there`);
	assertRows([found], [row(at.id, at)]);
	assertWrites(await writesAt(storage, at), [write(at.id, "task", 0, at)]);
	const scanned = await scanRows(storage, { threadId: where.threadId, ns: where.ns, limit: ALL });
	assert.ok(scanned.some(({ threadId, ns, id }) => threadId === at.threadId && ns === at.ns && id === at.id));
	if (where.id === undefined) {
		assert.equal(scanned.length, 1);
		assert.deepEqual(await newestRow(storage, at.threadId, at.ns), found);
	}
}

async function removeOneByOne({ storage, remove }: StorageScene, keys: ReturnType<typeof key>[]): Promise<void> {
	for (const [n, one] of keys.entries()) {
		const { checkpoints, writes } = await remove({ checkpoints: [one] });
		assert.deepEqual([checkpoints, writes], [1, 1], `${JSON.stringify(one).slice(0, 100)} was not removed alone`);
		assert.equal((await storage.totals()).checkpoints, keys.length - n - 1);
	}
}

async function putEverywhere({ put, remove, fresh }: StorageScene, data: Uint8Array): Promise<void> {
	await put({
		checkpoint: row("a", { head: data }),
		writes: [write("a", "task", 0, { value: data })],
		blobs: [blob(await fresh(), data)],
	});
	await remove({ deltaBases: [{ ...key("a"), channel: "log", data }] });
}

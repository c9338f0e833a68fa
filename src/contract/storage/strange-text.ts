import assert from "node:assert/strict";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { assertSameRows, assertWrites, plainBase, plainRow } from "./plain.ts";
import { blob, bytes, deltaBase, key, row, type StorageScene, write } from "./storage-scene.ts";

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

/** Any text can be any id or name, and only the very same text is the same. */
export function strangeTextRules(test: StorageTest): void {
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
			assert.deepEqual(
				(await scene.storage.getPath(key(id), 5)).map((found) => found.id),
				[id],
			);
		}
		await removeOneByOne(
			scene,
			TEXTS.map((id) => key(id)),
		);
	});

	test("TEXT-ANY: any text can be the id of a parent", async ({ storage, putRows, remove }) => {
		await putRows(...TEXTS.map((id) => row(id)), ...TEXTS.map((parentId, n) => row(checkpointId(n), { parentId })));
		for (const [n, parentId] of TEXTS.entries()) {
			const children = await storage.getChildren("thread", "", [parentId]);
			assert.deepEqual(children.map(plainRow), [row(checkpointId(n), { parentId })]);
			const path = await storage.getPath(key(checkpointId(n)), 5);
			assert.deepEqual(
				path.map(({ id }) => id),
				[checkpointId(n), parentId],
			);
		}
		const next = (n: number) => TEXTS[(n + 1) % TEXTS.length];
		await remove({ relink: TEXTS.map((_, n) => ({ key: key(checkpointId(n)), parentId: next(n) })) });
		for (const n of TEXTS.keys()) assert.equal((await storage.getCheckpoint(key(checkpointId(n))))?.parentId, next(n));
	});

	test("TEXT-ANY: any text can be the id of a task, and every name of a write", async ({
		storage,
		putWrites,
		remove,
	}) => {
		const writes = TEXTS.map((text) => write("a", text, 0, { channel: text, runId: text, type: text }));
		await putWrites(...writes);
		await putWrites(...writes.map((one) => ({ ...one, value: bytes("again") })));
		assertWrites(await storage.getWrites([key("a")]), writes);
		for (const [n, one] of writes.entries()) {
			assert.equal((await remove({ writes: [one] })).writes, 1);
			assert.equal((await storage.getThreadWrites("thread")).length, writes.length - n - 1);
		}
	});

	test("TEXT-ANY: any text can be a run, a source and the channel of a delta base", async ({
		storage,
		putRows,
		remove,
	}) => {
		const rows = TEXTS.map((text, n) => row(checkpointId(n), { runId: text, source: text }));
		await putRows(...rows);
		assertSameRows((await storage.scan({ limit: 1_000 })).map(plainRow), rows);
		for (const [n, runId] of TEXTS.entries())
			assert.deepEqual(
				(await storage.findRuns([runId])).checkpoints.map(({ id }) => id),
				[checkpointId(n)],
			);
		const deltaBases = TEXTS.map((channel) => deltaBase("a", channel, `of ${channel}`));
		await remove({ deltaBases });
		assertSameRows((await storage.getDeltaBases([key("a")])).map(plainBase), deltaBases);
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
	const found = await storage.getCheckpoint(at);
	assert.ok(found, `the row of ${JSON.stringify(at).slice(0, 100)} is not there`);
	assert.deepEqual(plainRow(found), row(at.id, at));
	assertWrites(await storage.getWrites([at]), [write(at.id, "task", 0, at)]);
	const scanned = await storage.scan({ ...where, limit: 1_000 });
	assert.ok(scanned.some(({ threadId, ns, id }) => threadId === at.threadId && ns === at.ns && id === at.id));
	if (where.id === undefined) {
		assert.equal(scanned.length, 1);
		assert.deepEqual(await storage.getLatest(at.threadId, at.ns), found);
	}
}

async function removeOneByOne({ storage, remove }: StorageScene, keys: ReturnType<typeof key>[]): Promise<void> {
	for (const [n, one] of keys.entries()) {
		const { checkpoints, writes } = await remove({ checkpoints: [one] });
		assert.deepEqual([checkpoints, writes], [1, 1], `${JSON.stringify(one).slice(0, 100)} was not removed alone`);
		assert.equal((await storage.totals()).checkpoints, keys.length - n - 1);
	}
}

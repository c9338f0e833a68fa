import assert from "node:assert/strict";
import type { CheckpointKey, Labels, Scan, Storage } from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { shuffled } from "./plain.ts";
import { scanKeys } from "./reads.ts";
import { key, row } from "./storage-scene.ts";

/** Ids whose order is not the one of a dictionary, least first. */
const IDS = ["!", "0", "1", "10", "9", "A", "B", "Z", "a", "a!", "aa", "ab", "b", "ß", "é", "中"];

/** Texts whose order is another by UTF-16 units than by bytes, least first. */
const BEYOND_UNITS = ["\uD7FF", "\uE000", "\uFFEE", "\u{10000}", "😀"];

/** Labels of all kinds; a row without any is found by all. */
const LABELS: (Labels | undefined)[] = [
	{ "it's": "loop", step: 1, user: "a" },
	{ "it's": "loop", step: 2, user: "a\u0000b", score: 0.5 },
	{ "it's": "input", step: 1.5, user: null, isDone: true },
	{ isDone: false, user: "", "": "empty", step: -1e21 },
	{ ["__proto__"]: "proto", constructor: "x", "a\u0000": "\u{1F9F5}", 'a"b.c[0]': "%", "\\u0000": "\\u0000" },
	{ step: "1", score: Number.MAX_SAFE_INTEGER, isDone: "true", user: "null" },
	{},
	undefined,
];

/** read of a scan: order, bounds, filters and pages. */
export function scanRules(test: StorageTest): void {
	test("SCAN-ORDER: rows come by descending id, compared as binary, the newest first", async ({ storage, putRows }) => {
		await putRows(...shuffled(IDS).map((id) => row(id)), row("zz", { ns: "x" }), row("zz", { threadId: "other" }));
		assert.deepEqual(await idsOf(storage, { threadId: "thread", ns: "" }), [...IDS].reverse());
		assert.deepEqual(await idsOf(storage, { threadId: "thread", ns: "", limit: 1 }), ["中"]);
	});

	test("SCAN-ORDER: text beyond the basic plane is compared by its bytes in UTF-8 too", async (scene) => {
		const { storage, putRows, thread } = scene;
		await putRows(...BEYOND_UNITS.map((id) => row(id)));
		await putRows(...BEYOND_UNITS.flatMap((name) => [row("a", { threadId: name }), row("a", { ns: name })]));
		const descending = [...BEYOND_UNITS].reverse();
		const scan = { threadId: "thread", ns: "" };
		assert.deepEqual(await idsOf(storage, scan), descending);
		assert.deepEqual(await idsOf(storage, { ...scan, before: "\u{10000}" }), descending.slice(2));
		assert.equal((await thread()).newest, "😀");
	});

	test("SCAN-ORDER: rows with one id come by ascending thread, then namespace", async ({ storage, putRows }) => {
		const places = ["b", "a", "B"].flatMap((threadId) => ["x", "", "xy", "X"].map((ns) => ({ threadId, ns })));
		await putRows(...places.map((place) => row("1", place)), row("2", { threadId: "zz" }), row("0", { threadId: "0" }));
		const ofOne = (threadId: string) => ["", "X", "x", "xy"].map((ns) => key("1", ns, threadId));
		const expected = [key("2", "", "zz"), ...["B", "a", "b"].flatMap(ofOne), key("0", "", "0")];
		assert.deepEqual(await scanKeys(storage), expected);
	});

	test("SCAN-WHERE: thread and namespace match exactly, each on its own too", async ({ storage, putRows }) => {
		for (const threadId of ["a", "ab", "b"])
			for (const ns of ["", "a", "ab"]) await putRows(row("1", { threadId, ns }), row("2", { threadId, ns }));
		for (const threadId of [undefined, "a", "ab", "abc", "A", ""])
			for (const ns of [undefined, "", "a", "ab", "abc"])
				for (const limit of [1, 3, 100]) await storage.read({ threadId, ns, limit }, "rows");
		assert.equal((await scanKeys(storage, { threadId: "ab" })).length, 6);
		assert.deepEqual(await scanKeys(storage, { threadId: "abc", ns: "" }), []);
	});

	test("SCAN-BEFORE: only smaller ids come, whether or not the bound is stored", async ({ storage, putRows }) => {
		await putRows(...IDS.map((id) => row(id)));
		for (const before of ["", "!", "1", "11", "A", "a", "aaa", "zzz", "中", "\u{10FFFF}"])
			for (const limit of [2, 100]) {
				await storage.read({ before, limit }, "rows");
				await storage.read({ threadId: "thread", ns: "", before, limit }, "rows");
			}
		assert.deepEqual(await idsOf(storage, { before: "11" }), ["10", "1", "0", "!"]);
	});

	test("SCAN-LIMIT: at most as many rows come as are asked for, the first ones", async ({ storage, chain }) => {
		const newestFirst = (await chain(10)).reverse();
		for (const limit of [0, 1, 9, 10, 11])
			assert.deepEqual(await idsOf(storage, { limit }), newestFirst.slice(0, limit));
	});

	test("SCAN-AFTER: a row that is gone is still a place to go on from", async ({ storage, putRows, remove }) => {
		await putRows(...["a", "c", "e"].map((id) => row(id)), row("c", { threadId: "thread2" }));
		await remove({ checkpoints: [key("c")] });
		assert.deepEqual(await idsOf(storage, { after: key("c") }), ["c", "a"]);
		assert.deepEqual(await idsOf(storage, { after: key("c", "x", "thread2") }), ["a"]);
		assert.deepEqual(await idsOf(storage, { after: key("d", "any", "other") }), ["c", "a"]);
		assert.deepEqual(await idsOf(storage, { after: key("z"), before: "c" }), ["a"]);
	});

	test("SCAN-AFTER: rows that come and go between pages do not disturb the others", async (scene) => {
		const ids = (await scene.chain(30)).reverse();
		const seen: string[] = [];
		for (let after: CheckpointKey | undefined; ; ) {
			const page: CheckpointKey[] = await scanKeys(scene.storage, { threadId: "thread", after, limit: 4 });
			if (page.length === 0) break;
			seen.push(...page.map(({ id }) => id));
			after = page.at(-1);
			await scene.remove({ checkpoints: page.slice(0, 1) });
			await scene.putRows(row(checkpointId(1000 + seen.length)));
		}
		assert.deepEqual(seen, ids);
	});

	test("SCAN-SOURCE: only rows with the source and the step come that are asked for, a full page of them", async (scene) => {
		const sources = ["loop", "loop ", "input", "", undefined, "it's", "lo%", "\u0000"];
		const steps = [0, -1, 1, undefined];
		for (const [n, source] of sources.entries())
			for (const [m, step] of steps.entries())
				await scene.putRows(row(checkpointId(n * 10 + m), { source, step, ns: m % 2 ? "x" : "" }));
		for (const source of [...sources, "never"])
			for (const step of [...steps, 99])
				for (const scan of [{ limit: 1 }, { limit: 3 }, { limit: 100 }, { threadId: "thread", ns: "", limit: 1 }])
					await scene.storage.read({ ...scan, source, step }, "rows");
		assert.deepEqual(await idsOf(scene.storage, { source: "", step: -1 }), [checkpointId(31)]);
	});

	test("SCAN-SOURCE: a row that is put again has its new source and step", async ({ storage, putRows }) => {
		await putRows(row("a", { source: "input", step: 1 }), row("a", { source: "loop", step: 2 }));
		assert.deepEqual(await idsOf(storage, { source: "input" }), []);
		assert.deepEqual(await idsOf(storage, { source: "loop", step: 2 }), ["a"]);
	});

	test("SCAN-LABELS: rows that have the labels come, whatever others are left out", async ({ storage, put }) => {
		for (const [n, labels] of LABELS.entries()) await put({ checkpoint: row(checkpointId(n)), labels });
		const single = LABELS.flatMap((one) => Object.entries(one ?? {}).map(([name, value]) => ({ [name]: value })));
		const others: Labels[] = [{ "it's": "loop", user: "a" }, { step: 1, user: "b" }, { never: "put" }, {}];
		for (const labels of [...single, ...others])
			for (const threadId of ["thread", undefined])
				for (const limit of [1, 100]) await storage.read({ threadId, labels, limit }, "rows");
	});

	test("SCAN-LABELS: pages that end with a short one give every row that has the labels", async ({ storage, put }) => {
		const ids = Array.from({ length: 60 }, (_, n) => checkpointId(n));
		for (const [n, id] of ids.entries()) await put({ checkpoint: row(id), labels: { user: n % 7 === 0 ? "a" : "b" } });
		for (const threadId of ["thread", undefined]) {
			const found = (await scanPages(storage, { threadId, labels: { user: "a" } }, 4)).map(({ id }) => id);
			assert.deepEqual(
				missingFrom(
					found,
					ids.filter((_, n) => n % 7 === 0),
				),
				[],
			);
		}
	});

	test("SCAN-LABELS: a row that is put again has its new labels, or is found by any", async ({ storage, put }) => {
		for (const [id, labels] of Object.entries({ a: { user: "new" }, b: undefined })) {
			await put({ checkpoint: row(id), labels: { user: "old" } });
			await put({ checkpoint: row(id), labels });
		}
		assert.deepEqual(await idsOf(storage, { labels: { user: "new" } }), ["b", "a"]);
	});

	test("SCAN-LABELS: rows that are relinked or copied are still found by their labels", async (scene) => {
		const { storage, put, remove, copy } = scene;
		for (const id of ["a", "b"]) await put({ checkpoint: row(id), labels: { user: id } });
		await remove({ relinked: [row("b", { parentId: "a" })] });
		await copy("copy", { checkpoints: ["b", "c"].map((id) => row(id, { threadId: "copy", step: 3 })) });
		await copy("some", { keys: [key("a")] });
		const assertFound = async (user: string, ...expected: string[]) => {
			const found = await scanKeys(storage, { labels: { user } });
			assert.deepEqual(
				missingFrom(
					found.map(({ threadId, id }) => `${id} of ${threadId}`),
					expected,
				),
				[],
			);
		};
		await assertFound("a", "a of thread", "a of copy", "a of some");
		await assertFound("b", "b of thread", "b of copy");
		// A row that was not copied has no labels, so any find it.
		await assertFound("other", "c of copy");
	});

	for (const size of [1, 7, 64])
		test(`SCAN-PAGES: pages of ${size} give each of 180 rows once and in order`, async ({ storage, putRows }) => {
			const places = ["a", "ab", "b"].flatMap((threadId) => ["", "x"].map((ns) => ({ threadId, ns })));
			const ids = Array.from({ length: 30 }, (_, n) => checkpointId(n));
			await putRows(...shuffled(places.flatMap((place) => ids.map((id) => row(id, place)))));
			const pair = { threadId: "ab", ns: "" };
			for (const scan of [{}, { threadId: "a" }, { ns: "x" }, pair, { ...pair, before: checkpointId(21) }])
				assert.deepEqual(await scanPages(storage, scan, size), await scanKeys(storage, scan));
		});
}

async function scanPages(storage: Storage, scan: Partial<Scan>, size: number): Promise<CheckpointKey[]> {
	const found: CheckpointKey[] = [];
	for (let after: CheckpointKey | undefined; ; after = found.at(-1)) {
		const page = await scanKeys(storage, { ...scan, after, limit: size });
		found.push(...page);
		assert.ok(found.length <= 1_000, "the pages do not end");
		if (page.length < size) return found;
	}
}

async function idsOf(storage: Storage, scan: Partial<Scan>): Promise<string[]> {
	return (await scanKeys(storage, scan)).map(({ id }) => id);
}

function missingFrom<T>(found: readonly T[], expected: readonly T[]): T[] {
	return expected.filter((one) => !found.includes(one));
}

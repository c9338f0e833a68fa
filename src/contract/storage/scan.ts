import assert from "node:assert/strict";
import type { CheckpointKey, CheckpointRow, Labels, Scan, Storage } from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { compareIds, compareKeys, plainKey, shuffled } from "./plain.ts";
import { findRow, newestRow, scanKeys, scanRows } from "./reads.ts";
import { key, row } from "./storage-scene.ts";

/** Ids whose order is not the one of a dictionary, least first. */
const IDS = ["!", "0", "1", "10", "9", "A", "B", "Z", "a", "a!", "aa", "ab", "b", "ß", "é", "中"];

/** Texts whose order is another by UTF-16 units than by bytes, least first. */
const BEYOND_UNITS = ["\uD7FF", "\uE000", "\uFFEE", "\u{10000}", "😀"];

/** More than any test here stores. */
const MOST_ROWS = 1_000;

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
	test("SCAN-NEWEST: the newest row is the one with the greatest id, in whatever order they come", async ({
		storage,
		putRows,
	}) => {
		await putRows(...shuffled(IDS).map((id) => row(id)), row("zz", { ns: "x" }), row("zz", { threadId: "other" }));
		assert.equal((await newestRow(storage, "thread", ""))?.id, "中");
		assert.equal((await newestRow(storage, "thread", "x"))?.id, "zz");
		assert.deepEqual(await newestRow(storage, "thread", ""), await findRow(storage, key("中")));
	});

	test("SCAN-NEWEST: without a row there is no newest", async ({ storage, putRows }) => {
		assert.equal(await newestRow(storage, "thread", ""), undefined);
		await putRows(row("a"));
		for (const [threadId, ns] of [
			["thread", "x"],
			["threa", ""],
			["thread2", ""],
			["", ""],
		] as const)
			assert.equal(await newestRow(storage, threadId, ns), undefined);
	});

	test("SCAN-ORDER: rows come by descending id, compared as binary", async ({ storage, putRows }) => {
		await putRows(...shuffled(IDS).map((id) => row(id)));
		assert.deepEqual(await idsOf(storage, { limit: 100 }), [...IDS].reverse());
	});

	test("SCAN-ORDER: text beyond the basic plane is compared by its bytes in UTF-8 too", async ({
		storage,
		putRows,
		thread,
	}) => {
		await putRows(...BEYOND_UNITS.map((id) => row(id)));
		await putRows(...BEYOND_UNITS.flatMap((name) => [row("a", { threadId: name }), row("a", { ns: name })]));
		const descending = [...BEYOND_UNITS].reverse();
		assert.deepEqual(await idsOf(storage, { threadId: "thread", ns: "", limit: 100 }), descending);
		assert.deepEqual(
			await idsOf(storage, { threadId: "thread", ns: "", before: "\u{10000}", limit: 100 }),
			descending.slice(2),
		);
		assert.equal((await newestRow(storage, "thread", ""))?.id, "😀");
		assert.equal((await thread()).newest, "😀");
		const ties = (await scanRows(storage, { limit: 100 })).filter(({ id }) => id === "a");
		assert.deepEqual(ties.map(plainKey), ties.map(plainKey).sort(compareKeys));
	});

	test("SCAN-ORDER: rows with one id come by ascending thread, then namespace", async ({ storage, putRows }) => {
		const keys = ["b", "a", "ab", "B"].flatMap((threadId) => ["x", "", "xy", "X"].map((ns) => key("1", ns, threadId)));
		await putRows(...keys.map((one) => row(one.id, one)), row("2", { threadId: "zz" }), row("0", { threadId: "0" }));
		const found = await scanKeys(storage, { limit: 100 });
		const expected = [key("2", "", "zz"), ...[...keys].sort(compareKeys), key("0", "", "0")];
		assert.deepEqual(found, expected);
	});

	test("SCAN-WHERE: thread and namespace match exactly, each on its own too", async ({ storage, putRows }) => {
		const keys = ["a", "ab", "b"].flatMap((threadId) =>
			["", "a", "ab"].flatMap((ns) => [key("1", ns, threadId), key("2", ns, threadId)]),
		);
		await putRows(...keys.map((one) => row(one.id, one)));
		for (const threadId of [undefined, "a", "ab", "abc"])
			for (const ns of [undefined, "", "a", "ab", "abc"]) {
				const expected = keys.filter((one) => (threadId ?? one.threadId) === one.threadId && (ns ?? one.ns) === one.ns);
				assert.deepEqual(await scanKeys(storage, { threadId, ns, limit: 100 }), expected.sort(compareKeys));
			}
	});

	test("SCAN-BEFORE: only smaller ids come, whether or not the bound is stored", async ({ storage, putRows }) => {
		await putRows(...IDS.map((id) => row(id)));
		for (const before of ["", "!", "1", "11", "A", "a", "aaa", "zzz", "中", "\u{10FFFF}"]) {
			const expected = IDS.filter((id) => compareIds(id, before) < 0).reverse();
			assert.deepEqual(await idsOf(storage, { before, limit: 100 }), expected);
			assert.deepEqual(await idsOf(storage, { threadId: "thread", ns: "", before, limit: 2 }), expected.slice(0, 2));
		}
	});

	test("SCAN-LIMIT: at most as many rows come as are asked for, the first ones", async ({ storage, chain }) => {
		const newestFirst = (await chain(10)).reverse();
		for (const limit of [0, 1, 9, 10, 11])
			assert.deepEqual(await idsOf(storage, { limit }), newestFirst.slice(0, limit));
	});

	test("SCAN-AFTER: a row that is gone is still a place to go on from", async ({ storage, putRows, remove }) => {
		await putRows(...["a", "c", "e"].map((id) => row(id)), row("c", { threadId: "thread2" }));
		await remove({ checkpoints: [key("c")] });
		assert.deepEqual(await idsOf(storage, { after: key("c"), limit: 10 }), ["c", "a"]);
		assert.deepEqual(await idsOf(storage, { after: key("c", "x", "thread2"), limit: 10 }), ["a"]);
		assert.deepEqual(await idsOf(storage, { after: key("d", "any", "other"), limit: 10 }), ["c", "a"]);
	});

	test("SCAN-AFTER: rows that come and go between pages do not disturb the others", async ({
		storage,
		putRows,
		remove,
		chain,
	}) => {
		const ids = (await chain(30)).reverse();
		const seen: string[] = [];
		for (let after: CheckpointKey | undefined; ; ) {
			const page = await scanRows(storage, { threadId: "thread", after, limit: 4 });
			if (page.length === 0) break;
			seen.push(...page.map(({ id }) => id));
			assert.ok(seen.length <= MOST_ROWS, "the pages do not end");
			after = page.at(-1);
			await remove({ checkpoints: [key(page[0]?.id as string)] });
			await putRows(row(checkpointId(1000 + seen.length)));
		}
		assert.deepEqual(seen, ids);
	});

	test("SCAN-SOURCE: only rows with the source and the step come that are asked for, a full page of them", async (scene) => {
		const { storage, putRows } = scene;
		const sources = ["loop", "loop ", "input", "", undefined, "it's", "lo%", "\u0000"];
		const steps = [0, -1, 1, undefined];
		const rows = sources.flatMap((source, n) =>
			steps.map((step, m) => row(checkpointId(n * 10 + m), { source, step, ns: m % 2 ? "x" : "" })),
		);
		await putRows(...shuffled(rows));
		for (const source of [...sources, "never"])
			for (const step of [...steps, 99])
				for (const limit of [1, 3, 100]) {
					const isWanted = (one: CheckpointRow) =>
						(source === undefined || one.source === source) && (step === undefined || one.step === step);
					const expected = rows.filter(isWanted).map(plainKey).sort(compareKeys).slice(0, limit);
					assert.deepEqual(await scanKeys(storage, { source, step, limit }), expected);
				}
	});

	test("SCAN-SOURCE: a row that is put again has its new source and step", async ({ storage, putRows }) => {
		await putRows(row("a", { source: "input", step: 1 }), row("a", { source: "loop", step: 2 }));
		assert.deepEqual(await scanKeys(storage, { source: "input" }), []);
		assert.deepEqual(await scanKeys(storage, { source: "loop", step: 2 }), [key("a")]);
	});

	test("SCAN-LABELS: rows that have the labels come, whatever others are left out", async ({ storage, put }) => {
		for (const [n, labels] of LABELS.entries()) await put({ checkpoint: row(checkpointId(n)), labels });
		const wanted: Labels[] = [
			...LABELS.flatMap((one) => Object.entries(one ?? {}).map(([name, value]) => ({ [name]: value }))),
			{ "it's": "loop", user: "a" },
			{ step: 1, user: "b" },
			{ never: "put" },
			{},
		];
		for (const labels of wanted)
			for (const threadId of ["thread", undefined]) await assertFound(storage, { threadId, labels });
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
		for (const [id, labels] of [
			["a", { user: "new" }],
			["b", undefined],
		] as const) {
			await put({ checkpoint: row(id), labels: { user: "old" } });
			await put({ checkpoint: row(id), labels });
		}
		assert.deepEqual(await scanKeys(storage, { labels: { user: "new" } }), [key("b"), key("a")]);
	});

	test("SCAN-LABELS: rows that are relinked or copied are still found by their labels", async (scene) => {
		const { storage, put, remove, copy } = scene;
		for (const id of ["a", "b"]) await put({ checkpoint: row(id), labels: { user: id, n: 1 } });
		await remove({ relinked: [row("b", { parentId: "a" })] });
		const added = ["b", "c"].map((id) => row(id, { threadId: "copy", step: 3 }));
		await copy("copy", { checkpoints: added });
		await copy("some", { keys: [key("a")], checkpoints: [] });
		const find = async (labels: Labels) =>
			(await scanKeys(storage, { labels })).map(({ threadId, id }) => `${id} of ${threadId}`);
		const ofEach =
			(user: string, ...names: string[]) =>
			async () =>
				assert.deepEqual(missingFrom(await find({ user }), names), []);
		await ofEach("a", "a of thread", "a of copy", "a of some")();
		await ofEach("b", "b of thread", "b of copy")();
		// A row that was not copied has no labels, so any find it.
		await ofEach("other", "c of copy")();
	});

	for (const size of [1, 7, 64])
		test(`SCAN-PAGES: pages of ${size} give each of 300 rows once and in order`, async ({ storage, put }) => {
			const rows = manyRows();
			for (const checkpoint of shuffled(rows)) await put({ checkpoint });
			const queries: Omit<Scan, "limit">[] = [
				{},
				{ threadId: "a" },
				{ ns: "x" },
				{ threadId: "ab", ns: "" },
				{ before: checkpointId(31) },
				{ threadId: "a", before: checkpointId(40) },
			];
			for (const query of queries) {
				const expected = rows.filter((one) => matches(query, one)).map(plainKey);
				assert.ok(expected.length > 30);
				assert.deepEqual(await scanPages(storage, query, size), expected.sort(compareKeys));
			}
		});
}

/** 50 ids in each of three threads with two namespaces. */
function manyRows(): CheckpointRow[] {
	const ids = Array.from({ length: 50 }, (_, n) => checkpointId(n));
	return ["a", "ab", "b"].flatMap((threadId) => ["", "x"].flatMap((ns) => ids.map((id) => row(id, { threadId, ns }))));
}

function matches({ threadId, ns, before }: Omit<Scan, "limit">, key: CheckpointKey): boolean {
	return (
		(threadId ?? key.threadId) === key.threadId &&
		(ns ?? key.ns) === key.ns &&
		(before === undefined || key.id < before)
	);
}

async function scanPages(storage: Storage, query: Omit<Scan, "limit">, size: number): Promise<CheckpointKey[]> {
	const found: CheckpointKey[] = [];
	for (let after: CheckpointKey | undefined; ; after = found.at(-1)) {
		const page = await scanRows(storage, { ...query, after, limit: size });
		assert.ok(page.length <= size);
		found.push(...page.map(plainKey));
		assert.ok(found.length <= MOST_ROWS, "the pages do not end");
		if (page.length < size) return found;
	}
}

async function idsOf(storage: Storage, scan: Partial<Scan>): Promise<string[]> {
	return (await scanKeys(storage, scan)).map(({ id }) => id);
}

/** Of the rows that were put with {@link LABELS}, those that have the labels of the scan, or none at all, must be found. */
async function assertFound(storage: Storage, scan: Partial<Scan>): Promise<void> {
	const isFound = (labels: Labels | undefined) =>
		labels === undefined || Object.entries(scan.labels ?? {}).every(([name, value]) => labels[name] === value);
	const expected = LABELS.flatMap((labels, n) => (isFound(labels) ? [checkpointId(n)] : []));
	assert.deepEqual(missingFrom(await idsOf(storage, scan), expected), []);
}

function missingFrom<T>(found: readonly T[], expected: readonly T[]): T[] {
	return expected.filter((one) => !found.includes(one));
}

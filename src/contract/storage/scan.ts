import assert from "node:assert/strict";
import type { CheckpointKey, CheckpointRow, Labels, ScanQuery, Storage } from "../../storage/storage.ts";
import { checkpointId } from "../scene.ts";
import type { StorageTest } from "../storage-contract.ts";
import { compareIds, compareKeys, plainKey } from "./plain.ts";
import { key, row } from "./storage-scene.ts";

/** Ids whose order is not the one of a dictionary, least first. */
const IDS = ["!", "0", "1", "10", "9", "A", "B", "Z", "a", "a!", "aa", "ab", "b", "ß", "é", "中"];

/** Texts whose order is another by UTF-16 units than by bytes, least first. */
const BEYOND_UNITS = ["\uD7FF", "\uE000", "\uFFEE", "\u{10000}", "😀"];

/** More than any test here stores. */
const MOST_ROWS = 1_000;

/** getLatest and scan: order, bounds and pages. */
export function scanRules(test: StorageTest): void {
	test("LATEST-ID: the newest row is the one with the greatest id, in whatever order they come", async ({
		storage,
		putRows,
	}) => {
		await putRows(...shuffled(IDS).map((id) => row(id)), row("zz", { ns: "x" }), row("zz", { threadId: "other" }));
		assert.equal((await storage.getLatest("thread", ""))?.id, "中");
		assert.equal((await storage.getLatest("thread", "x"))?.id, "zz");
		assert.deepEqual(await storage.getLatest("thread", ""), await storage.getCheckpoint(key("中")));
	});

	test("LATEST-ID: without a row there is no newest", async ({ storage, putRows }) => {
		assert.equal(await storage.getLatest("thread", ""), undefined);
		await putRows(row("a"));
		for (const [threadId, ns] of [
			["thread", "x"],
			["threa", ""],
			["thread2", ""],
			["", ""],
		] as const)
			assert.equal(await storage.getLatest(threadId, ns), undefined);
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
		assert.equal((await storage.getLatest("thread", ""))?.id, "😀");
		assert.equal((await thread()).head, "😀");
		const ties = (await storage.scan({ limit: 100 })).filter(({ id }) => id === "a");
		assert.deepEqual(ties.map(plainKey), ties.map(plainKey).sort(compareKeys));
	});

	test("SCAN-ORDER: rows with one id come by ascending thread, then namespace", async ({ storage, putRows }) => {
		const keys = ["b", "a", "ab", "B"].flatMap((threadId) => ["x", "", "xy", "X"].map((ns) => key("1", ns, threadId)));
		await putRows(...keys.map((one) => row(one.id, one)), row("2", { threadId: "zz" }), row("0", { threadId: "0" }));
		const found = (await storage.scan({ limit: 100 })).map(plainKey);
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
				assert.deepEqual((await storage.scan({ threadId, ns, limit: 100 })).map(plainKey), expected.sort(compareKeys));
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
			const page = await storage.scan({ threadId: "thread", after, limit: 4 });
			if (page.length === 0) break;
			seen.push(...page.map(({ id }) => id));
			assert.ok(seen.length <= MOST_ROWS, "the pages do not end");
			after = page.at(-1);
			await remove({ checkpoints: [key(page[0]?.id as string)] });
			await putRows(row(checkpointId(1000 + seen.length)));
		}
		assert.deepEqual(seen, ids);
	});

	test("SCAN-LABELS: rows that have labels come, whatever others are left out", async ({ storage, put }) => {
		const labels: (Labels | undefined)[] = [
			{ source: "loop", step: 1, user: "a" },
			{ source: "loop", step: 2, user: "a\u0000b", score: 0.5 },
			{ source: "input", step: 1.5, user: null, isDone: true },
			{},
			undefined,
		];
		for (const [n, one] of labels.entries()) {
			const { source, step } = (one ?? {}) as { source?: string; step?: number };
			const columns = { source, step: Number.isInteger(step) ? step : undefined };
			await put({ checkpoint: row(checkpointId(n), columns), labels: one });
		}
		const wanted: Labels[] = [
			...labels.flatMap((one) => Object.entries(one ?? {}).map(([name, value]) => ({ [name]: value }))),
			{ source: "loop", user: "a" },
			{ step: 1, user: "b" },
			{},
		];
		for (const one of wanted) {
			const found = await idsOf(storage, { labels: one, limit: 10 });
			const isFound = (labels: Labels | undefined) =>
				Object.entries(one).every(([name, value]) => labels?.[name] === value);
			const expected = labels.flatMap((labels, n) => (labels && isFound(labels) ? [checkpointId(n)] : []));
			assert.deepEqual(
				expected.filter((id) => !found.includes(id)),
				[],
			);
		}
	});

	test("SCAN-CONTAINS: rows whose heads have the pieces come, whatever others are left out", async (scene) => {
		const { storage, put } = scene;
		const heads = ["", "a", "xabx", "ba", "x ab ba x", "ab".repeat(2000), "\u0000ab"].map((text) => Buffer.from(text));
		for (const [n, head] of heads.entries()) await put({ checkpoint: row(checkpointId(n), { head }) });
		for (const texts of [[], ["ab"], ["ab", "ba"], ["\u0000"], ["x", "ab"], ["c"]]) {
			const pieces = texts.map((text) => Buffer.from(text));
			for (const threadId of ["thread", undefined]) {
				const found = await idsOf(storage, { threadId, contains: { pieces }, limit: 10 });
				const expected = heads.flatMap((head, n) =>
					pieces.every((piece) => head.includes(piece)) ? [checkpointId(n)] : [],
				);
				assert.deepEqual(
					expected.filter((id) => !found.includes(id)),
					[],
				);
			}
		}
	});

	for (const size of [1, 7, 64])
		test(`SCAN-PAGES: pages of ${size} give each of 300 rows once and in order`, async ({ storage, put }) => {
			const rows = manyRows();
			for (const checkpoint of shuffled(rows)) await put({ checkpoint });
			const queries: Omit<ScanQuery, "limit">[] = [
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

function matches({ threadId, ns, before }: Omit<ScanQuery, "limit">, key: CheckpointKey): boolean {
	return (
		(threadId ?? key.threadId) === key.threadId &&
		(ns ?? key.ns) === key.ns &&
		(before === undefined || key.id < before)
	);
}

async function scanPages(storage: Storage, query: Omit<ScanQuery, "limit">, size: number): Promise<CheckpointKey[]> {
	const found: CheckpointKey[] = [];
	for (let after: CheckpointKey | undefined; ; after = found.at(-1)) {
		const page = await storage.scan({ ...query, after, limit: size });
		assert.ok(page.length <= size);
		found.push(...page.map(plainKey));
		assert.ok(found.length <= MOST_ROWS, "the pages do not end");
		if (page.length < size) return found;
	}
}

async function idsOf(storage: Storage, query: ScanQuery): Promise<string[]> {
	return (await storage.scan(query)).map(({ id }) => id);
}

/** In an order that is no order, but always the same. */
export function shuffled<T>(items: readonly T[]): T[] {
	const result = [...items];
	let state = 7;
	for (let i = result.length - 1; i > 0; i--) {
		state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
		const j = state % (i + 1);
		[result[i], result[j]] = [result[j] as T, result[i] as T];
	}
	return result;
}

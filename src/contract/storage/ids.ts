import assert from "node:assert/strict";
import type { Storage } from "../../storage/storage.ts";
import type { StorageTest } from "../storage-contract.ts";
import { row } from "./storage-scene.ts";

/** reserveIds: numbers that are never handed out twice. */
export function idRules(test: StorageTest): void {
	test("IDS-UNIQUE: blocks of any size never overlap", async ({ storage }) => {
		assertDistinct(await reserve(storage, [1, 256, 3, 1, 1, 1000, 2]));
	});

	test("IDS-UNIQUE: calls at the same time get different numbers", async ({ storage }) => {
		const blocks = await Promise.all(Array.from({ length: 50 }, (_, n) => reserve(storage, [1 + (n % 7)])));
		assertDistinct(blocks.flat());
	});

	test("IDS-UNIQUE: numbers are not handed out again after clear or the end of a thread", async ({
		storage,
		putRows,
	}) => {
		const before = await reserve(storage, [10]);
		await putRows(row("a"));
		await storage.removeThread("thread");
		before.push(...(await reserve(storage, [10])));
		await storage.clear();
		assertDistinct([...before, ...(await reserve(storage, [10]))]);
	});

	test("IDS-UNIQUE: two storages over the same data, at once or one after the other, get different numbers", async ({
		storage,
		reopen,
	}) => {
		const ids = await reserve(storage, [300]);
		const other = await reopen();
		for (let n = 0; n < 10; n++) {
			ids.push(...(await reserve(storage, [3])));
			ids.push(...(await reserve(other, [2])));
		}
		const together = await Promise.all([reserve(storage, [5, 5]), reserve(other, [5, 5])]);
		assertDistinct([...ids, ...together.flat()]);
	});

	test("IDS-SAFE: numbers are whole, positive and exact", async ({ storage }) => {
		for (const id of await reserve(storage, [1, 500])) assert.ok(Number.isSafeInteger(id) && id > 0, `got ${id}`);
	});
}

/** The numbers of blocks that are reserved one after the other. */
async function reserve(storage: Storage, counts: readonly number[]): Promise<number[]> {
	const ids: number[] = [];
	for (const count of counts) {
		const first = await storage.reserveIds(count);
		ids.push(...Array.from({ length: count }, (_, n) => first + n));
	}
	return ids;
}

function assertDistinct(ids: readonly number[]): void {
	assert.equal(new Set(ids).size, ids.length, "a number was handed out twice");
}

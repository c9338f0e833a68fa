import type { Storage } from "../storage/storage.ts";
import { SkipList } from "./rule-test.ts";
import { atomicRules } from "./storage/atomic.ts";
import { blobRules } from "./storage/blobs.ts";
import { closingRules } from "./storage/closing.ts";
import { copyRules } from "./storage/copy.ts";
import { guardRules } from "./storage/guard.ts";
import { idRules } from "./storage/ids.ts";
import { pathRules } from "./storage/paths.ts";
import { putRules } from "./storage/put.ts";
import { readRules } from "./storage/read.ts";
import { removeRules } from "./storage/remove.ts";
import { replaceRules } from "./storage/replace.ts";
import { runRules } from "./storage/runs.ts";
import { scanRules } from "./storage/scan.ts";
import { stampRules } from "./storage/stamps.ts";
import { StorageScene } from "./storage/storage-scene.ts";
import { storyRules } from "./storage/stories.ts";
import { threadRules } from "./storage/threads.ts";
import { valueRules } from "./storage/values.ts";
import { writeRules } from "./storage/writes.ts";
import type { Skip, TestApi } from "./types.ts";

/** A storage of its own for one test. */
export interface StorageSetup {
	/** Empty. */
	storage: Storage;
	/**
	 * Opens the same data with another storage, as a second process would, while the first may still be open.
	 * Leave it out if the data live and die with the storage.
	 */
	reopen?: () => Promise<Storage>;
	/** Called after the test, when every storage of it has been closed. */
	teardown?: () => Promise<void>;
}

/** What {@link runStorageContract} needs to know. */
export interface StorageContractOptions {
	/** Heads the tests. */
	name: string;
	test: TestApi;
	/** Called once per test. */
	setup: () => Promise<StorageSetup>;
	/** False if the backend stores other bytes than it is given, compressed for example, and counts those. Default true. */
	countsBytes?: boolean;
	skip?: readonly Skip[];
}

/** Registers one test. The name starts with the rule it checks and a colon: `SCAN-ORDER: rows …`. */
export type StorageTest = (name: string, body: (scene: StorageScene) => Promise<void>) => void;

const TOPICS: Record<string, (test: StorageTest) => void> = {
	reserveIds: idRules,
	put: putRules,
	writes: writeRules,
	stamps: stampRules,
	"the guard": guardRules,
	atomicity: atomicRules,
	"read of a scan": scanRules,
	"read and readThread": readRules,
	readPath: pathRules,
	findRuns: runRules,
	"blobs and families": blobRules,
	remove: removeRules,
	copy: copyRules,
	replaceBytes: replaceRules,
	"threads and totals": threadRules,
	"values and text": valueRules,
	"random stories": storyRules,
	"clear, close and reopen": closingRules,
};

/**
 * Registers everything that {@link Storage} promises as tests, for a backend of your own. Brings no test runner: pass
 * `describe` and `it` of yours.
 *
 * Each test asks `setup` for an empty storage, closes it and calls `teardown`. A rule that a backend can't keep is
 * skipped by name, with a reason; a skip that matches nothing is an error.
 *
 * @example
 * ```ts
 * import { describe, it } from "vitest";
 * import { runStorageContract } from "langgraph-checkpoint-delta/contract";
 * import { MyStorage } from "./my-storage.js";
 *
 * runStorageContract({
 *   name: "MyStorage",
 *   test: { describe, it },
 *   setup: async () => ({ storage: new MyStorage() }),
 * });
 * ```
 */
export function runStorageContract(options: StorageContractOptions): void {
	const { describe, it } = options.test;
	const skips = new SkipList(options.skip ?? [], testNames());
	const test: StorageTest = (name, body) => {
		const run = () => runInScene(options, body);
		const reason = skips.reasonFor(name);
		if (reason === undefined) it(name, run);
		else it.skip(`${name} (skipped: ${reason})`, run);
	};
	describe(`${options.name} keeps the storage contract`, () => {
		for (const [name, register] of Object.entries(TOPICS)) describe(name, () => register(test));
	});
}

function testNames(): string[] {
	const names: string[] = [];
	for (const register of Object.values(TOPICS)) register((name) => void names.push(name));
	return names;
}

async function runInScene(options: StorageContractOptions, body: (scene: StorageScene) => Promise<void>) {
	const { storage, reopen, teardown } = await options.setup();
	const scene = new StorageScene(storage, reopen, options.countsBytes);
	try {
		await body(scene);
		await scene.finish();
	} finally {
		await scene.close();
		await teardown?.();
	}
}

import assert from "node:assert/strict";
import type { FoundCheckpoint, Reading, Scan, Storage } from "../../storage/storage.ts";
import type { NaiveStorage } from "./naive-storage.ts";
import { plainBase, plainBlob, plainFound, plainKey, plainWrite, plainWriteKey, sorted } from "./plain.ts";

/** Makes a count fit to be compared. */
type Counted = <T extends { readonly bytes: unknown }>(count: T) => object;

type Method = Exclude<keyof Storage, "reserveIds" | "tidy" | "close">;
type Call = (...args: unknown[]) => Promise<unknown>;

const same = (answer: unknown) => answer;
const counted = (answer: { bytes: unknown } | undefined, counted: Counted) => answer && counted(answer);

/** What is compared of each answer: what comes in any order, in any order. */
const PLAIN: { [M in Method]: (answer: Awaited<ReturnType<Storage[M]>>, counted: Counted) => unknown } = {
	read: ({ checkpoints, writes, blobs }) => ({
		checkpoints: checkpoints.map(plainFound),
		writes: sorted(writes.map(plainWrite)),
		blobs: sorted(blobs.map(plainBlob)),
	}),
	// Of an epoch nothing can be said but whether it changes.
	readPath: ({ path, siblings, writes, deltaBases, orphans }) => ({
		path: path.map(plainFound),
		siblings: sorted(siblings.map(plainFound)),
		writes: sorted(writes.map(plainWrite)),
		deltaBases: sorted(deltaBases.map(plainBase)),
		orphans: orphans && sorted(orphans.map(plainWrite)),
	}),
	readOutline: ({ checkpoints, written }) => ({
		checkpoints: checkpoints.map((row) => ({ ...plainKey(row), parentId: row.parentId })),
		written: [...new Set(written.map(({ ns, channel }) => JSON.stringify([ns, channel])))].sort(),
	}),
	readThread: ({ writes, deltaBases }) => ({
		writes: sorted(writes.map(plainWrite)),
		deltaBases: sorted(deltaBases.map(plainBase)),
	}),
	getBlobs: (blobs) => sorted(blobs.map(plainBlob)),
	findRuns: ({ checkpoints, writes }) => ({
		checkpoints: sorted(checkpoints.map(plainKey)),
		writes: sorted(writes.map(plainWriteKey)),
	}),
	getThread: same,
	listThreads: same,
	readFamily: ({ blobs, named, deltaBases }, counted) => ({
		blobs: sorted(blobs.map(({ id, base, source, bytes }) => counted({ id, base, source, bytes }))),
		named: [...new Set(named)].sort((a, b) => a - b),
		deltaBases: sorted(deltaBases.map(plainBase)),
	}),
	listFamilies: same,
	totals: counted,
	put: same,
	remove: counted,
	copy: counted,
	removeThread: counted,
	removeBlobs: same,
	replaceBytes: same,
	clear: same,
	check: same,
};

/**
 * A storage that does everything on a model too and fails where the answers differ: a test makes its calls one after the
 * other, and states only what it is about.
 */
export function checkStorage(backend: Storage, model: NaiveStorage, counted: Counted): Storage {
	const check = (name: Method): Call => {
		const [actual, expected] = [backend, model].map((storage) => (storage[name] as Call).bind(storage)) as [Call, Call];
		return async (...args) => {
			const answer = await actual(...args);
			const [which] = args as [Partial<Scan>];
			if (name === "read" && which.labels !== undefined) await checkLabelled(model, which as Scan, answer as Reading);
			else {
				const other = await expected(...args).catch((error) => assert.fail(`${name} was not rejected with: ${error}`));
				const plain = PLAIN[name] as (answer: unknown, counted: Counted) => unknown;
				assert.deepEqual(plain(answer, counted), plain(other, counted), `${name} answers something else`);
			}
			return answer;
		};
	};
	const methods = Object.fromEntries(Object.keys(PLAIN).map((name) => [name, check(name as Method)]));
	return {
		...(methods as unknown as Storage),
		reserveIds: (count) => backend.reserveIds(count),
		tidy: () => backend.tidy(),
		close: () => backend.close(),
	};
}

/** Rows with other labels may be among those that a scan for labels finds: otherwise it is as one without. */
async function checkLabelled(model: NaiveStorage, scan: Scan, { checkpoints }: Reading): Promise<void> {
	const everything = { ...scan, limit: Number.MAX_SAFE_INTEGER };
	const wide = await model.read({ ...everything, labels: undefined }, "rows");
	const exact = await model.read(everything, "rows");
	const nameOf = (row: FoundCheckpoint) => JSON.stringify(plainKey(row));
	const names = new Set([...checkpoints, ...exact.checkpoints].map(nameOf));
	const expected = wide.checkpoints.filter((row) => names.has(nameOf(row))).slice(0, scan.limit);
	assert.deepEqual(checkpoints.map(plainFound), expected.map(plainFound));
}

import { describe, expect, it } from "vitest";
import { runStorageContract, type StorageContractOptions } from "../../src/contract/storage-contract.ts";
import type { FoundCheckpoint, PutBatch, Storage } from "../../src/storage/storage.ts";
import { override, SharedMemory } from "../support/shared-memory.ts";

/** Storages over the same data, each broken in the same way or not at all. */
function setUp(mutate: Mutant = () => ({})) {
	return async () => {
		const shared = new SharedMemory();
		const open = () => {
			const storage = shared.open();
			return override(storage, mutate(storage));
		};
		return { storage: open(), reopen: async () => open() };
	};
}

runStorageContract({ name: "Memory that is shared", test: { describe, it }, setup: setUp() });

type Mutant = (inner: Storage) => Partial<Storage>;

/** Ways to break a storage, by the rule that finds it. */
const MUTANTS: Record<string, Record<string, Mutant>> = {
	"READ-KEYS": {
		"rows come in the order of a scan": (inner) => ({
			read: async (which, depth, known) => {
				const reading = await inner.read(which, depth, known);
				return { ...reading, checkpoints: [...reading.checkpoints].sort((a, b) => (a.id < b.id ? 1 : -1)) };
			},
		}),
	},
	"READ-DEPTH": {
		"rows come with writes and blobs": (inner) => ({ read: (which, _, known) => inner.read(which, "values", known) }),
	},
	"READ-WRITES": {
		"only the first generation comes": (inner) => ({
			read: async (...args) => {
				const reading = await inner.read(...args);
				return { ...reading, writes: reading.writes.filter(({ generation }) => generation === 0) };
			},
		}),
	},
	"READ-BLOBS": {
		"bases do not come along": (inner) => ({
			read: async (...args) => {
				const reading = await inner.read(...args);
				const named = new Set(reading.checkpoints.flatMap(({ blobs }) => blobs));
				return { ...reading, blobs: reading.blobs.filter(({ id }) => named.has(id)) };
			},
		}),
		"blobs come twice": (inner) => ({
			read: async (...args) => {
				const reading = await inner.read(...args);
				return { ...reading, blobs: [...reading.blobs, ...reading.blobs] };
			},
		}),
	},
	"READ-KNOWN": { "it is ignored": (inner) => ({ read: (which, depth) => inner.read(which, depth) }) },
	"READ-THREAD": {
		"orphans are left out": (inner) => ({
			readThread: async (threadId) => {
				const reading = await inner.readThread(threadId);
				const ids = new Set((await inner.readOutline(threadId)).checkpoints.map(({ id }) => id));
				return { ...reading, writes: reading.writes.filter(({ id }) => ids.has(id)) };
			},
		}),
	},
	"SCAN-ORDER": {
		"ids are compared by UTF-16 units": (inner) => ({
			read: async (which, depth, known) => {
				const reading = await inner.read(which, depth, known);
				const compare = (a: FoundCheckpoint, b: FoundCheckpoint) => (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
				return {
					...reading,
					checkpoints: "limit" in which ? [...reading.checkpoints].sort(compare) : reading.checkpoints,
				};
			},
		}),
	},
	"SCAN-AFTER": {
		"rows with the id of the place are left out": (inner) => ({
			read: async (which, ...rest) =>
				inner.read(
					"limit" in which && which.after ? { ...which, after: undefined, before: which.after.id } : which,
					...rest,
				),
		}),
	},
	"SCAN-SOURCE": {
		"the page is cut before it is filtered": (inner) => ({
			read: async (which, ...rest) => {
				if (!("limit" in which)) return inner.read(which, ...rest);
				const { source, ...scan } = which;
				const reading = await inner.read(scan, ...rest);
				return { ...reading, checkpoints: reading.checkpoints.filter((row) => (source ?? row.source) === row.source) };
			},
		}),
	},
	"SCAN-LABELS": {
		"rows without labels are left out": (inner) => {
			const labelled = new Set<string>();
			return {
				put: async (batch) => {
					if (batch.labels !== undefined) labelled.add(batch.checkpoint?.id ?? "");
					return inner.put(batch);
				},
				read: async (which, ...rest) => {
					const reading = await inner.read(which, ...rest);
					if (!("limit" in which) || which.labels === undefined) return reading;
					return { ...reading, checkpoints: reading.checkpoints.filter(({ id }) => labelled.has(id)) };
				},
			};
		},
	},
	"PATH-LIMIT": { "it is one too many": (inner) => ({ readPath: (key, limit) => inner.readPath(key, limit + 1) }) },
	"PATH-SIBLINGS": {
		"they are forgotten": (inner) => ({
			readPath: async (...args) => ({ ...(await inner.readPath(...args)), siblings: [] }),
		}),
		"the path is among them": (inner) => ({
			readPath: async (...args) => {
				const reading = await inner.readPath(...args);
				return { ...reading, siblings: [...reading.siblings, ...reading.path.slice(0, -1)] };
			},
		}),
	},
	"PATH-ORPHANS": {
		"they come where the path goes on": (inner) => ({
			readPath: async (...args) => {
				const reading = await inner.readPath(...args);
				return { ...reading, orphans: reading.orphans ?? [] };
			},
		}),
		"they do not come": (inner) => ({
			readPath: async (...args) => ({ ...(await inner.readPath(...args)), orphans: undefined }),
		}),
	},
	"PATH-WRITES": {
		"delta bases are forgotten": (inner) => ({
			readPath: async (...args) => ({ ...(await inner.readPath(...args)), deltaBases: [] }),
		}),
	},
	"PUT-ROW": {
		"blobs come back in order": (inner) => ({
			put: async (batch) => inner.put(withRow(batch, ({ blobs }) => ({ blobs: [...blobs].sort((a, b) => a - b) }))),
		}),
	},
	"PUT-REPLACE": {
		"the old parent is kept": (inner) => ({
			put: async (batch) => {
				const [old] = (await inner.read(batch.checkpoint ? [batch.checkpoint] : [], "rows")).checkpoints;
				return inner.put(old === undefined ? batch : withRow(batch, () => ({ parentId: old.parentId })));
			},
		}),
	},
	"WRITE-ROW": {
		"the task's path is lost": (inner) => ({
			put: (batch) => inner.put({ ...batch, writes: batch.writes.map((one) => ({ ...one, taskPath: undefined })) }),
		}),
	},
	"WRITE-DROP": { "it replaces": (inner) => ({ put: (batch) => inner.put(withConflict(batch, "drop", "replace")) }) },
	"WRITE-REPLACE": { "it adds": (inner) => ({ put: (batch) => inner.put(withConflict(batch, "replace", "add")) }) },
	"WRITE-ADD": { "it drops": (inner) => ({ put: (batch) => inner.put(withConflict(batch, "add", "drop")) }) },
	"REMOVE-LINK": {
		"the head stays": (inner) => ({
			remove: async (batch) => {
				const old = (await inner.read(batch.relinked, "rows")).checkpoints;
				const relinked = batch.relinked.map((row, n) => ({ ...row, head: old[n]?.head ?? row.head }));
				return inner.remove({ ...batch, relinked });
			},
		}),
		"the parent stays": (inner) => ({ remove: (batch) => inner.remove({ ...batch, relinked: [] }) }),
	},
	"REMOVE-ORPHAN": {
		"they go in any case": (inner) => ({
			remove: (batch) => inner.remove({ ...batch, writes: [...batch.writes, ...batch.orphans] }),
		}),
	},
	"COPY-SOME": { "everything is copied": (inner) => ({ copy: (batch) => inner.copy({ ...batch, keys: undefined }) }) },
	"COPY-ROWS": {
		"they are forgotten": (inner) => ({ copy: (batch) => inner.copy({ ...batch, checkpoints: [] }) }),
		"delta bases are forgotten": (inner) => ({ copy: (batch) => inner.copy({ ...batch, deltaBases: [] }) }),
	},
	"REPLACE-SEEN": {
		"what was seen is ignored": (inner) => ({
			replaceBytes: async (replacements) => {
				await inner.replaceBytes(replacements);
				return replacements.length;
			},
		}),
	},
	"STAMP-PUT": { "any is taken": (inner) => ({ put: ({ stamp: _, ...batch }) => inner.put(batch) }) },
	"GUARD-HEAD": { "there is none": (inner) => ({ put: ({ onlyOnHead: _, ...batch }) => inner.put(batch) }) },
	"ATOMIC-PUT": {
		"writes are stored first": (inner) => ({
			put: async (batch) => {
				if (batch.stamp === undefined) await inner.put({ ...batch, checkpoint: undefined, blobs: [] });
				return inner.put({ ...batch, writes: [] });
			},
		}),
	},
	"ATOMIC-MOMENT": {
		"blobs are read after the rows": (inner) => ({
			read: async (which, depth, known) => {
				const { checkpoints, writes } = await inner.read(which, depth, known);
				await new Promise((resolve) => setImmediate(resolve));
				const blobs = await inner.getBlobs(checkpoints.flatMap(({ blobs }) => blobs));
				return { checkpoints, writes, blobs };
			},
		}),
	},
	"FAMILY-MOMENT": {
		"blobs are read after the rows": (inner) => ({
			readFamily: async (family) => {
				const { named, deltaBases } = await inner.readFamily(family);
				await new Promise((resolve) => setTimeout(resolve, 1));
				return { named, deltaBases, blobs: (await inner.readFamily(family)).blobs };
			},
		}),
	},
	"FAMILY-NAMED": {
		"writes are forgotten": (inner) => ({
			readFamily: async (family) => {
				const { blobs, deltaBases } = await inner.readFamily(family);
				const { checkpoints } = await inner.read({ limit: 100 }, "rows");
				return { blobs, deltaBases, named: checkpoints.flatMap((row) => row.blobs) };
			},
		}),
	},
	"FAMILY-REMOVE": {
		"the family is ignored": (inner) => ({
			removeBlobs: async (_, ids) => {
				for (const family of await inner.listFamilies(100, undefined)) await inner.removeBlobs(family, ids);
			},
		}),
	},
	"EPOCH-OTHERS": {
		"it never changes": (inner) => ({
			readPath: async (...args) => ({ ...(await inner.readPath(...args)), epoch: 0 }),
		}),
	},
	"EPOCH-OWN": { "it always changes": countEpochs },
	"EPOCH-MOMENT": {
		"it is read after the path": (inner) => ({
			readPath: async (...args) => {
				const reading = await inner.readPath(...args);
				await new Promise((resolve) => setTimeout(resolve, 1));
				return { ...reading, epoch: (await inner.readPath(...args)).epoch };
			},
		}),
	},
	"NEVER-THROWS": {
		"it throws": (inner) => ({
			getThread: (threadId) => {
				if (threadId === "thread") throw new Error("It is closed.");
				return inner.getThread(threadId);
			},
		}),
	},
	"CLEAR-ALL": {
		"blobs stay": (inner) => ({
			clear: async () => {
				for (const { threadId } of await inner.listThreads(100, undefined)) await inner.removeThread(threadId);
			},
		}),
	},
};

function countEpochs(inner: Storage): Partial<Storage> {
	let epoch = 0;
	return { readPath: async (...args) => ({ ...(await inner.readPath(...args)), epoch: epoch++ }) };
}

function withRow(batch: PutBatch, change: (row: NonNullable<PutBatch["checkpoint"]>) => object): PutBatch {
	const { checkpoint } = batch;
	return { ...batch, checkpoint: checkpoint && { ...checkpoint, ...change(checkpoint) } };
}

type Conflict = PutBatch["writes"][number]["conflict"];

function withConflict(batch: PutBatch, from: Conflict, to: Conflict): PutBatch {
	const writes = batch.writes.map((one) => ({ ...one, conflict: one.conflict === from ? to : one.conflict }));
	return { ...batch, writes };
}

describe("The storage contract finds a storage", () => {
	for (const [rule, mutants] of Object.entries(MUTANTS))
		for (const [name, mutate] of Object.entries(mutants))
			it(`that breaks ${rule}: ${name}`, async () => {
				expect(await runRule(rule, setUp(mutate))).toBe(false);
			});
});

/** Whether all tests of a rule pass. */
async function runRule(rule: string, setup: StorageContractOptions["setup"]): Promise<boolean> {
	const bodies: (() => Promise<void>)[] = [];
	const collect = (name: string, body: () => Promise<void>) => {
		if (name.startsWith(`${rule}: `)) bodies.push(body);
	};
	const api = { describe: (_: string, body: () => void) => body(), it: Object.assign(collect, { skip: collect }) };
	runStorageContract({ name: "A mutant", test: api, setup });
	expect(bodies.length).toBeGreaterThan(0);
	for (const body of bodies)
		try {
			await body();
		} catch {
			return false;
		}
	return true;
}

import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { collect } from "../../../src/contract/thread.ts";
import { DeltaSaver, type Storage } from "../../../src/index.ts";
import { PostgresSaver } from "../../../src/postgres.ts";
import type { SealedSaver, SealedSaverOptions } from "../../../src/saver/sealed-saver.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { MemoryStorage } from "../../../src/storage/memory/storage.ts";
import { Sealer } from "../../../src/storage/sealed/sealer.ts";
import { SealedStorage } from "../../../src/storage/sealed/storage.ts";
import type { FoundCheckpoint } from "../../../src/storage/storage.ts";
import { emptySchema } from "../../support/postgres.ts";
import { makeTemporaryFolder, removeFolder } from "../../support/run-node.ts";

const encryption = { key: new Uint8Array(32).fill(1) };
const thread = (threadId: string) => ({ configurable: { thread_id: threadId, checkpoint_ns: "" } });

async function put(saver: DeltaSaver, threadId: string): Promise<void> {
	const checkpoint = { ...emptyCheckpoint(), channel_values: { secret: "text" }, channel_versions: { secret: 1 } };
	await saver.put(thread(threadId), checkpoint, { source: "input", step: -1, parents: {}, ...{ owner: "somebody" } });
}

function write(saver: DeltaSaver, threadId: string): Promise<void> {
	return saver.putWrites({ configurable: { ...thread(threadId).configurable, checkpoint_id: "c" } }, [["a", 1]], "t");
}

type Open = (options?: SealedSaverOptions) => SealedSaver;

/** Savers on one database, as in several processes. */
const databases: [string, (use: (open: Open) => Promise<void>) => Promise<void>][] = [
	[
		"SqliteSaver",
		async (use) => {
			const folder = makeTemporaryFolder();
			await use((options) => new SqliteSaver(join(folder, "checkpoints.db"), options));
			removeFolder(folder);
		},
	],
	[
		"PostgresSaver",
		async (use) => {
			const { pool, schema, leave } = await emptySchema();
			await use((options) => new PostgresSaver(pool, { schema, ...options }));
			await leave();
		},
	],
];

const wrongKey = { key: new Uint8Array(32).fill(2) };

describe.each(databases)("Without its key, %s", (_, withDatabase) => {
	it.each<[string, SealedSaverOptions]>([
		["no key", {}],
		["another key", { encryption: wrongKey }],
		["another key that may migrate", { encryption: { ...wrongKey, migrate: true } }],
	])("stores nothing in a database that is encrypted: %s", (_, options) =>
		withDatabase(async (open) => {
			const encrypted = open({ encryption });
			await put(encrypted, "hidden");
			// A thread that is newer, and has no checkpoint to tell by.
			await write(encrypted, "writes");
			const other = open(options);
			for (const store of [
				() => put(other, "new"),
				() => put(other, "hidden"),
				() => write(other, "new"),
				() => write(other, "hidden"),
				() => other.copyThread("hidden", "copy"),
			])
				await expect(store()).rejects.toMatchObject({ code: "WRONG_KEY" });
			expect((await encrypted.listThreads()).threads.map(({ threadId }) => threadId)).toEqual(["writes", "hidden"]);
			expect(await encrypted.verify()).toMatchObject({ checkpoints: 1, writes: 1, damage: [] });
			expect(await encrypted.rotateKeys()).toBe(0);
			await put(encrypted, "new");
			expect((await encrypted.getTuple(thread("new")))?.checkpoint.channel_values).toEqual({ secret: "text" });
			for (const saver of [encrypted, other]) await saver.close();
		}),
	);

	it("encrypts nothing in a database that is in clear, unless it may migrate", () =>
		withDatabase(async (open) => {
			const plain = open();
			await put(plain, "open");
			const strict = open({ encryption });
			for (const store of [() => put(strict, "new"), () => write(strict, "open")])
				await expect(store()).rejects.toMatchObject({ code: "WRONG_KEY", message: expect.stringContaining("migrate") });
			expect(await plain.verify()).toMatchObject({ checkpoints: 1, writes: 0, damage: [] });
			const migrating = open({ encryption: { ...encryption, migrate: true } });
			await put(migrating, "new");
			await put(strict, "newer");
			for (const saver of [plain, strict, migrating]) await saver.close();
		}));

	it("goes on in a database that is not, until somebody encrypts it", () =>
		withDatabase(async (open) => {
			const plain = open();
			await put(plain, "open");
			// Which thread was updated last is told by milliseconds.
			await setTimeout(2);
			const encrypted = open({ encryption: { ...encryption, migrate: true } });
			await put(encrypted, "hidden");
			const late = open();
			await expect(put(late, "new")).rejects.toMatchObject({ code: "WRONG_KEY" });
			expect((await encrypted.getTuple(thread("open")))?.checkpoint.channel_values).toEqual({ secret: "text" });
			for (const saver of [plain, encrypted, late]) await saver.close();
		}));
});

describe("A saver with the right key", () => {
	const options = { compression: false, encryption };
	const open = (inner: Storage) => new DeltaSaver(new SealedStorage(inner, new Sealer(options)));

	it("looks at the newest checkpoint before its first put, and not again", async () => {
		const inner = new MemoryStorage();
		await put(open(inner), "old");
		const listed = vi.spyOn(inner, "listThreads");
		const saver = open(inner);
		for (const threadId of ["a", "b", "c"]) await put(saver, threadId);
		expect(listed).toHaveBeenCalledTimes(1);
	});

	it("stores although the newest checkpoint is damaged", async () => {
		const inner = new MemoryStorage();
		await put(open(inner), "old");
		const [row] = (await inner.read({ limit: 1 }, "rows")).checkpoints;
		const { head, ...key } = row as FoundCheckpoint;
		const damaged = head.map((byte, i) => (i === head.length - 1 ? byte ^ 1 : byte));
		await inner.replaceBytes([{ kind: "checkpoint", key, from: head, to: damaged }]);
		const saver = open(inner);
		await expect(saver.getTuple(thread("old"))).rejects.toMatchObject({ code: "CORRUPT" });
		await put(saver, "new");
		expect((await saver.getTuple(thread("new")))?.checkpoint.channel_values).toEqual({ secret: "text" });
	});

	it("tells the database nothing of a metadata filter but source and step", async () => {
		const inner = new MemoryStorage();
		const saver = open(inner);
		await put(saver, "old");
		const read = vi.spyOn(inner, "read");
		const found = await collect(saver.list({}, { filter: { owner: "somebody", source: "input", step: -1 } }));
		expect(found).toHaveLength(1);
		expect(await collect(saver.list({}, { filter: { owner: "nobody" } }))).toEqual([]);
		expect(read).toHaveBeenCalledWith(expect.objectContaining({ source: "input", step: -1 }), "values", undefined);
		expect(JSON.stringify(read.mock.calls)).not.toMatch(/owner|somebody|nobody/);
	});
});

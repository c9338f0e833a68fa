import { join } from "node:path";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import type { DeltaSaver } from "../../../src/index.ts";
import { PostgresSaver } from "../../../src/postgres.ts";
import type { SealedSaverOptions } from "../../../src/saver/sealed-saver.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { emptySchema } from "../../support/postgres.ts";
import { makeTemporaryFolder, removeFolder } from "../../support/run-node.ts";

const encryption = { key: new Uint8Array(32).fill(1) };
const thread = (threadId: string) => ({ configurable: { thread_id: threadId, checkpoint_ns: "" } });

async function put(saver: DeltaSaver, threadId: string): Promise<void> {
	const checkpoint = { ...emptyCheckpoint(), channel_values: { secret: "text" }, channel_versions: { secret: 1 } };
	await saver.put(thread(threadId), checkpoint, { source: "input", step: -1, parents: {} });
}

type Open = (options?: SealedSaverOptions) => DeltaSaver;

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

describe.each(databases)("Without its key, %s", (_, withDatabase) => {
	it("stores nothing in clear in a database that is encrypted", () =>
		withDatabase(async (open) => {
			const encrypted = open({ encryption });
			await put(encrypted, "hidden");
			const plain = open();
			const write = () =>
				plain.putWrites({ configurable: { ...thread("new").configurable, checkpoint_id: "c" } }, [["a", 1]], "t");
			for (const store of [
				() => put(plain, "new"),
				() => put(plain, "hidden"),
				write,
				() => plain.copyThread("hidden", "copy"),
			])
				await expect(store()).rejects.toMatchObject({ code: "WRONG_KEY" });
			expect((await encrypted.listThreads()).threads.map(({ threadId }) => threadId)).toEqual(["hidden"]);
			await put(encrypted, "new");
			expect((await encrypted.getTuple(thread("new")))?.checkpoint.channel_values).toEqual({ secret: "text" });
			for (const saver of [encrypted, plain]) await saver.close();
		}));

	it("goes on in a database that is not, until somebody encrypts it", () =>
		withDatabase(async (open) => {
			const plain = open();
			await put(plain, "open");
			const encrypted = open({ encryption: { ...encryption, migrate: true } });
			await put(encrypted, "hidden");
			const late = open();
			await expect(put(late, "new")).rejects.toMatchObject({ code: "WRONG_KEY" });
			expect((await encrypted.getTuple(thread("open")))?.checkpoint.channel_values).toEqual({ secret: "text" });
			for (const saver of [plain, encrypted, late]) await saver.close();
		}));
});

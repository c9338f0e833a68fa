import { join } from "node:path";
import Database from "better-sqlite3";
import type { DeltaSaver } from "../../src/index.ts";
import { PostgresSaver } from "../../src/postgres.ts";
import type { SealedSaverOptions } from "../../src/saver/sealed-saver.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { newSchema } from "../support/postgres.ts";
import { makeTemporaryFolder, removeFolder } from "../support/run-node.ts";
import { startServer, type TestServer } from "./support/server.ts";

interface Storage {
	open(options?: SealedSaverOptions): DeltaSaver;
	/** Cuts the last byte off every checkpoint of a thread in one namespace. */
	damage(threadId: string, ns: string): Promise<void>;
	remove(): void;
}

/** What is only in memory can't be damaged, nor encrypted. */
const storages: [string, () => Promise<Storage>][] = [
	[
		"SqliteSaver",
		async () => {
			const folder = makeTemporaryFolder();
			const path = join(folder, "checkpoints.db");
			return {
				open: (options) => new SqliteSaver(path, options),
				damage: async (threadId, ns) => {
					const database = new Database(path);
					const cut =
						"UPDATE delta_checkpoints SET head = substr(head, 1, length(head) - 1) WHERE thread_id = ? AND ns = ?";
					expect(database.prepare(cut).run(threadId, ns).changes).toBeGreaterThan(0);
					database.close();
				},
				remove: () => removeFolder(folder),
			};
		},
	],
	[
		"PostgresSaver",
		async () => {
			const { pool, schema } = await newSchema();
			return {
				open: (options) => new PostgresSaver(pool, { schema, ...options }),
				damage: async (threadId, ns) => {
					const { rowCount } = await pool.query(
						`UPDATE ${schema}.delta_checkpoint SET head = substring(head FOR length(head) - 1)
						WHERE thread = (SELECT number FROM ${schema}.delta_thread WHERE thread_id = $1) AND ns = $2`,
						[threadId, ns],
					);
					expect(rowCount).toBeGreaterThan(0);
				},
				remove: () => {},
			};
		},
	],
];

const encryption = { key: new Uint8Array(32).fill(1), migrate: true };

describe.each(storages)("A thread of a %s that can't be read", (_, open) => {
	let storage: Storage;
	const savers: DeltaSaver[] = [];
	beforeEach(async () => {
		storage = await open();
	});
	afterEach(async () => {
		for (const saver of savers.splice(0)) await saver.close();
		storage.remove();
	});

	function serve(options?: SealedSaverOptions): Promise<TestServer> {
		const saver = storage.open(options);
		savers.push(saver);
		return startServer(undefined, { checkpointer: saver });
	}

	async function fill({ client }: TestServer, ...ids: string[]): Promise<void> {
		for (const threadId of ids) {
			await client.threads.create({ threadId, metadata: { owner: threadId } });
			await client.runs.wait(threadId, "work", { input: { name: threadId } });
		}
	}

	/** Whatever is asked for, the thread `b` is there, and says what is wrong, and `a` and `c` are as ever. */
	async function check({ client, fetch }: TestServer, code: string): Promise<void> {
		const ids = async (query: object) => (await client.threads.search({ limit: 9, ...query })).map((t) => t.thread_id);
		const threads = await client.threads.search({ sortBy: "thread_id", sortOrder: "asc" });
		expect(threads).toMatchObject([
			{ thread_id: "a", status: "idle", values: { name: "a" }, metadata: { owner: "a" } },
			{ thread_id: "b", status: "error", interrupts: {} },
			{ thread_id: "c", status: "idle", values: { name: "c" }, metadata: { owner: "c" } },
		]);
		expect((threads[1] as { error?: object }).error).toMatchObject({ message: expect.stringContaining(`[${code}]`) });
		expect(threads[0]).not.toHaveProperty("error");
		for (const sortBy of ["created_at", "updated_at", "status", "state_updated_at"] as const)
			expect((await ids({ sortBy })).sort(), sortBy).toEqual(["a", "b", "c"]);
		expect(await ids({ status: "error" })).toEqual(["b"]);
		expect((await ids({ status: "idle" })).sort()).toEqual(["a", "c"]);
		expect(await ids({ metadata: { owner: "a" } })).toEqual(["a"]);
		expect(await ids({ values: { name: "c" } })).toEqual(["c"]);
		expect(await ids({ ids: ["b"] })).toEqual(["b"]);
		const [selected] = await client.threads.search({ ids: ["b"], select: ["status", "error"] as never });
		expect(selected).toMatchObject({ status: "error", error: { message: expect.stringContaining(code) } });
		expect(await client.threads.count()).toBe(3);
		expect(await client.threads.count({ status: "error" })).toBe(1);
		expect(await client.threads.count({ metadata: { owner: "c" } })).toBe(1);
		expect(await client.threads.get("b")).toMatchObject({ thread_id: "b", status: "error" });
		expect((await fetch("/threads/a/state")).status).toBe(200);
	}

	it("because its state is damaged is listed with an error, and hides no other", async () => {
		const log = vi.spyOn(console, "error").mockImplementation(() => {});
		await fill(await serve(), "a", "b", "c");
		await storage.damage("b", "");
		const server = await serve();
		await check(server, "CORRUPT");
		const thread = await server.client.threads.get("b");
		expect(thread).toMatchObject({ metadata: { owner: "b" } });
		expect(thread.values).toBeUndefined();
		// Those who ask for the state itself are told that there is none to be had.
		expect((await server.fetch("/threads/b/state")).status).toBe(500);
		const [run] = await server.client.runs.list("b");
		await expect(server.client.runs.join("b", run!.run_id)).rejects.toThrow();
		await server.client.threads.delete("b");
		expect(await server.client.threads.count()).toBe(2);
		log.mockRestore();
	});

	it.each(["|studio", "|studio|runs"])("because the record in %s is damaged is, too", async (ns) => {
		await fill(await serve(), "a", "b", "c");
		await storage.damage("b", ns);
		await check(await serve(), "CORRUPT");
	});

	it("although it was found idle before has an error as soon as its values are asked for", async () => {
		const server = await serve({ cacheBytes: 0 });
		await fill(server, "a", "b");
		expect(await server.client.threads.count({ status: "idle" })).toBe(2);
		await storage.damage("b", "");
		const threads = await server.client.threads.search({ sortBy: "thread_id", sortOrder: "asc" });
		expect(threads.map(({ status }) => status)).toEqual(["idle", "error"]);
	});

	it("because it is encrypted is listed with an error, and hides no other", async () => {
		await fill(await serve(), "a", "c");
		await fill(await serve({ encryption }), "b");
		const server = await serve();
		await check(server, "WRONG_KEY");
		expect(await server.client.threads.get("b")).toMatchObject({ metadata: {}, config: {} });
		const trusted = await serve({ encryption });
		expect(await trusted.client.threads.count({ status: "idle" })).toBe(3);
	});

	it("for another reason is not listed as if it was damaged", async () => {
		const log = vi.spyOn(console, "error").mockImplementation(() => {});
		const server = await serve();
		await fill(server, "a");
		const saver = savers.at(-1) as DeltaSaver;
		vi.spyOn(saver, "getTuple").mockRejectedValueOnce(new Error("out of order"));
		expect((await server.fetch("/threads/search", { json: {} })).status).toBe(500);
		expect((await server.fetch("/threads/search", { json: {} })).status).toBe(200);
		log.mockRestore();
	});
});

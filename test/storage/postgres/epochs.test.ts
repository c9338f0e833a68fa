import type { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import { emptySchema, openStorage } from "../../support/postgres.ts";

const key = { threadId: "thread", ns: "", id: "a" };

/** Stores a write of a task, under a checkpoint that need not be there. */
async function write(storage: PostgresStorage, taskId: string): Promise<void> {
	const fresh = await storage.reserveIds(1);
	const content = { idx: 0, taskPath: undefined, channel: "c", runId: undefined, actor: undefined, type: undefined };
	const row = { ...key, taskId, ...content, blob: undefined, value: new Uint8Array(1), conflict: "add" as const };
	await storage.put({ threadId: "thread", fresh, now: 1, blobs: [], writes: [row], deltaBases: [] });
}

async function putCheckpoint(storage: PostgresStorage, id = "a"): Promise<void> {
	const fresh = await storage.reserveIds(1);
	const row = { ...key, id, parentId: undefined, runId: undefined, source: undefined, step: undefined, blobs: [] };
	const checkpoint = { ...row, head: new Uint8Array(1) };
	await storage.put({ threadId: "thread", fresh, now: 1, checkpoint, blobs: [], writes: [], deltaBases: [] });
}

describe("The epoch of a thread in PostgreSQL", () => {
	it("stays the same while one storage puts many things at once", async () => {
		const { pool, schema, leave } = await emptySchema();
		const storage = openStorage(pool, schema);
		await putCheckpoint(storage);
		const { epoch } = await storage.readPath(key, 1);
		await Promise.all(Array.from({ length: 30 }, (_, n) => write(storage, `task ${n}`)));
		await Promise.all(["b", "c", "d"].map((id) => putCheckpoint(storage, id)));
		const found = await storage.readPath(key, 1);
		expect([found.epoch, found.writes.length]).toEqual([epoch, 30]);
		await leave();
	});

	it("tells each of two storages what the other has put, also if both put at the same time", async () => {
		const { pool, schema, leave } = await emptySchema();
		const storages = [openStorage(pool, schema), openStorage(pool, schema)];
		await putCheckpoint(storages[0]!);
		const work = storages.map(async (storage, own) => {
			/** How many writes of the other one were there, by epoch. */
			const seen = new Map<number, number>();
			for (let n = 0; n < 40; n++) {
				const { epoch, writes } = await storage.readPath(key, 1);
				const others = writes.filter(({ taskId }) => !taskId.startsWith(`${own} `)).length;
				expect(others).toBe(seen.get(epoch) ?? others);
				seen.set(epoch, others);
				// Several at once, so that they meet those of the other.
				if (n % 2 === 0) await Promise.all(["x", "y", "z"].map((task) => write(storage, `${own} ${n} ${task}`)));
			}
			return seen.size;
		});
		for (const epochs of await Promise.all(work)) expect(epochs).toBeGreaterThan(1);
		await leave();
	});
});

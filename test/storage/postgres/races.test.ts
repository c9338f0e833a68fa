import { readFileSync } from "node:fs";
import { join } from "node:path";
import { newSchema, openStorage } from "../../support/postgres.ts";
import { root } from "../../support/run-node.ts";

const key = { threadId: "thread", ns: "", id: "a" };
const content = { taskPath: undefined, channel: "c", runId: undefined, actor: undefined, type: undefined };
const write = { ...key, ...content, taskId: "task", idx: 0, blob: undefined, value: new Uint8Array(1) };

const checkpointOf = (id: string, parentId: string | undefined) => ({
	...key,
	...{ id, parentId, runId: undefined, source: undefined, step: undefined, blobs: [], head: new Uint8Array(1) },
});

/** A thread with one checkpoint, and a transaction of somebody else that has changed its row. */
async function setup(isPartitioned: boolean) {
	const { pool, schema } = await newSchema();
	const storage = openStorage(pool, schema);
	await storage.totals();
	const recipe = /```sql\n(.*?)```/s.exec(readFileSync(join(root, "src/storage/postgres/README.md"), "utf8"))?.[1];
	if (isPartitioned) await pool.query(`SET search_path = ${schema}; ${recipe}; RESET search_path`);
	const put = async (parts: object) => {
		const fresh = await storage.reserveIds(1);
		return storage.put({ threadId: "thread", fresh, now: 1, blobs: [], writes: [], deltaBases: [], ...parts });
	};
	await put({ checkpoint: checkpointOf("a", undefined) });
	const other = await pool.connect();
	await other.query(`BEGIN; UPDATE ${schema}.delta_thread SET writer = 1, writer_since = 1`);
	/** Lets the other one go on when a put waits for it. */
	const commit = async (sql = "") => {
		const blocked = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1";
		while ((await pool.query(blocked, [`%${schema}%`])).rowCount === 0);
		await other.query(`${sql}; COMMIT`);
		other.release();
	};
	return { pool, schema, put, commit };
}

describe.each([
	["tables as they are", false],
	["partitioned tables", true],
])("A put that has waited for its thread, in %s", (_, isPartitioned) => {
	it("is refused if the checkpoint that it follows is no longer the newest", async () => {
		const { schema, put, commit } = await setup(isPartitioned);
		const waiting = expect(put({ checkpoint: checkpointOf("c", "a"), onlyOnHead: true })).rejects.toMatchObject({
			code: "CONFLICT",
		});
		const table = `${schema}.delta_checkpoint`;
		await commit(`INSERT INTO ${table} (thread, batch, ns, id, parent_id, blobs, head)
			SELECT thread, 0, ns, 'b', 'a', '{}', head FROM ${table}`);
		await waiting;
	});

	it("tells the storage that has changed it meanwhile", async () => {
		const { pool, schema, put, commit } = await setup(isPartitioned);
		const waiting = put({ writes: [{ ...write, conflict: "add" }] });
		await commit();
		expect(await waiting).toMatchObject({ replaced: false });
		const { rows } = await pool.query(`SELECT writer <> '1' AND writer_since <> 1 AS told FROM ${schema}.delta_thread`);
		expect(rows).toEqual([{ told: true }]);
	});
});

import { type Checkpoint, type CheckpointTuple, uuid6 } from "@langchain/langgraph-checkpoint";
import pg from "pg";
import { type DeltaSaver, MemorySaver } from "../../../src/index.ts";
import { PostgresSaver } from "../../../src/postgres.ts";
import { killUnderLoad } from "../../stress/postgres/kills.ts";
import { emptySchema, postgresUrl } from "../../support/postgres.ts";
import { type Fault, PostgresProxy } from "../../support/postgres-proxy.ts";

let url: string;
let proxy: PostgresProxy;
let proxied: pg.Pool;

beforeAll(async () => {
	url = await postgresUrl();
	proxy = await PostgresProxy.start(url);
	proxied = new pg.Pool({ connectionString: proxy.url, max: 3 });
	proxied.on("error", () => {});
});

afterAll(async () => {
	await proxied.end();
	await proxy.stop();
});

const config = (id?: string, thread = "thread") => ({
	configurable: { thread_id: thread, checkpoint_ns: "", ...(id && { checkpoint_id: id }) },
});

/** Ids that are the same in every thread that is made. */
const IDS = Array.from({ length: 9 }, (_, n) => uuid6(n));
const text = (n: number) => `item ${n} ${"with some words ".repeat(40)}`;

function checkpointOf(n: number): Checkpoint {
	const list = Array.from({ length: n + 1 }, (_, i) => text(i));
	const versions = { list: n + 1, n: n + 1 };
	return {
		v: 4,
		id: IDS[n] as string,
		ts: "",
		channel_values: { list, n },
		channel_versions: versions,
		versions_seen: {},
	};
}

async function put(saver: DeltaSaver, n: number, parent = n - 1): Promise<void> {
	const checkpoint = checkpointOf(n);
	const metadata = { source: "loop" as const, step: n, parents: {}, run_id: `run ${n}` };
	await saver.put(config(IDS[parent]), checkpoint, metadata, checkpoint.channel_versions);
}

const writes = (saver: DeltaSaver, n: number) =>
	saver.putWrites(
		config(IDS[n]),
		[
			["list", text(n)],
			["n", n],
		],
		"task",
	);

/** What every call that changes something is tried on: three checkpoints with writes. */
async function prepare(saver: DeltaSaver): Promise<void> {
	for (const n of [0, 1, 2]) {
		await put(saver, n);
		await writes(saver, n);
	}
}

const CHANGES: Record<string, (saver: DeltaSaver) => Promise<unknown>> = {
	"put of a new checkpoint": (saver) => put(saver, 3),
	"put of a checkpoint that is there": (saver) => put(saver, 2, 2),
	"put of a fork": (saver) => put(saver, 4, 0),
	"putWrites of a new task": (saver) => saver.putWrites(config(IDS[2]), [["list", text(7)]], "task 2"),
	"putWrites of a task that wrote before": (saver) => writes(saver, 2),
	"putWrites of an interrupt": (saver) => saver.putWrites(config(IDS[2]), [["__interrupt__", { id: "i" }]], "task"),
	copyThread: (saver) => saver.copyThread("thread", "copy"),
	"copyThread of the latest": (saver) => saver.copyThread("thread", "copy", { latestOnly: true }),
	prune: (saver) => saver.prune(["thread"]),
	deleteForRuns: (saver) => saver.deleteForRuns(["run 1"]),
	deleteThread: (saver) => saver.deleteThread("thread"),
	clear: (saver) => saver.clear(),
};

/** Everything that is stored, as a reader with nothing in memory sees it. */
async function readAll(saver: DeltaSaver): Promise<{ tuples: CheckpointTuple[]; counts: unknown }> {
	const tuples: CheckpointTuple[] = [];
	for await (const tuple of saver.list({ configurable: {} })) tuples.push(tuple);
	const { threads, checkpoints, writes, blobs } = await saver.stats();
	const listed = (await saver.listThreads()).threads.map(({ threadId, checkpoints, head }) => [
		threadId,
		checkpoints,
		head,
	]);
	return { tuples, counts: { threads, checkpoints, writes, blobs, listed: listed.sort() } };
}

describe("A connection that is lost", () => {
	for (const [name, change] of Object.entries(CHANGES))
		for (const fault of ["lose request", "lose answer"] as const)
			it(`at any statement of ${name} (${fault}) leaves what one call leaves, and its answer`, async () => {
				const expected = new MemorySaver();
				await prepare(expected);
				const answer = await change(expected);
				for (let statement = 0; ; statement++) {
					const { pool, schema, leave } = await emptySchema();
					const plain = new PostgresSaver(pool, { schema });
					await prepare(plain);
					const saver = new PostgresSaver(proxied, { schema });
					// Its first calls look at the tables and reserve numbers.
					await saver.putWrites(config("elsewhere", "other"), [["n", 0]], "task");
					await plain.deleteThread("other");
					proxy.plan(...Array<Fault>(statement).fill("none"), fault);
					const given = await change(saver);
					const isOver = proxy.plan() > 0;
					// Bytes differ with the numbers of blobs.
					expect({ ...(given as object), bytes: 0 }).toEqual({ ...(answer as object), bytes: 0 });
					expect(await readAll(new PostgresSaver(pool, { schema }))).toEqual(await readAll(expected));
					await leave();
					if (isOver) break;
				}
			});
});

describe("A server that can't be worked with", () => {
	/** A saver on connections of its own, and what it stored before. */
	async function open(settings: pg.PoolConfig, retryTimeout: number) {
		const { pool, schema, leave } = await emptySchema();
		const plain = new PostgresSaver(pool, { schema });
		await prepare(plain);
		const own = new pg.Pool({ connectionString: url, ...settings });
		const saver = new PostgresSaver(own, { schema, retryTimeout });
		const close = async () => {
			await own.end();
			await leave();
		};
		return { pool, own, schema, plain, saver, close };
	}

	it("rejects with BUSY when all connections stay in use, and works when one is free again", async () => {
		const { own, saver, close } = await open({ max: 1 }, 200);
		const held = await own.connect();
		await expect(saver.getTuple(config())).rejects.toMatchObject({ code: "BUSY" });
		const waiting = put(saver, 3);
		held.release();
		await waiting;
		expect((await saver.getTuple(config()))?.checkpoint.id).toBe(IDS[3]);
		expect([own.totalCount, own.idleCount, own.waitingCount]).toEqual([1, 1, 0]);
		await close();
	});

	it("rejects with BUSY when the pool itself gives up", async () => {
		const { own, saver, close } = await open({ max: 1 }, 500);
		const held = await own.connect();
		own.options.connectionTimeoutMillis = 50;
		await expect(saver.getTuple(config())).rejects.toMatchObject({ code: "BUSY" });
		held.release();
		expect((await saver.getTuple(config()))?.checkpoint.id).toBe(IDS[2]);
		await close();
	});

	it("is asked again when a statement took longer than the server allows", async () => {
		const { pool, schema, saver, close } = await open({ statement_timeout: 40 }, 20_000);
		const blocker = await pool.connect();
		await blocker.query(`BEGIN; SELECT FROM ${schema}.delta_thread FOR UPDATE`);
		const putting = put(saver, 3);
		await new Promise((resolve) => setTimeout(resolve, 200));
		await blocker.query("COMMIT");
		blocker.release();
		await putting;
		expect((await saver.getTuple(config()))?.checkpoint.id).toBe(IDS[3]);
		expect((await saver.listThreads()).threads[0]?.checkpoints).toBe(4);
		await close();
	});

	it("rejects with BUSY when statements never come through, and nothing of them is stored", async () => {
		const { pool, schema, saver, plain, close } = await open({ statement_timeout: 40 }, 300);
		const blocker = await pool.connect();
		await blocker.query(`BEGIN; SELECT FROM ${schema}.delta_thread FOR UPDATE`);
		await expect(put(saver, 3)).rejects.toMatchObject({ code: "BUSY" });
		await blocker.query("COMMIT");
		blocker.release();
		expect((await plain.getTuple(config()))?.checkpoint.id).toBe(IDS[2]);
		await put(saver, 3);
		expect((await plain.getTuple(config()))?.checkpoint.id).toBe(IDS[3]);
		await close();
	});

	it("is read from if it takes no writes, which are rejected with READ_ONLY", async () => {
		const { saver, close } = await open({ options: "-c default_transaction_read_only=on" }, 1500);
		expect((await saver.getTuple(config()))?.checkpoint.channel_values).toEqual(checkpointOf(2).channel_values);
		expect((await saver.listThreads()).threads).toHaveLength(1);
		const refused = { code: "READ_ONLY" };
		await Promise.all([
			expect(put(saver, 3)).rejects.toMatchObject(refused),
			expect(saver.prune(["thread"])).rejects.toMatchObject(refused),
		]);
		await close();
	});

	it("is waited for while it takes no writes because another is about to take over", async () => {
		const { pool, schema, close } = await open({}, 0);
		const role = `role_${schema}`;
		await pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'p' SUPERUSER`);
		await pool.query(`ALTER ROLE ${role} SET default_transaction_read_only = on`);
		const saver = PostgresSaver.fromConnString(url.replace(/\/\/[^@]*@/, `//${role}:p@`), { schema });
		expect((await saver.getTuple(config()))?.checkpoint.id).toBe(IDS[2]);
		const putting = put(saver, 3);
		await new Promise((resolve) => setTimeout(resolve, 100));
		await pool.query(`ALTER ROLE ${role} SET default_transaction_read_only = off`);
		await putting;
		expect((await saver.getTuple(config()))?.checkpoint.id).toBe(IDS[3]);
		await saver.close();
		await pool.query(`DROP ROLE ${role}`);
		await close();
	});

	it("rejects with BUSY when it does not answer, and is asked on another connection then", async () => {
		const { pool, schema, leave } = await emptySchema();
		await prepare(new PostgresSaver(pool, { schema }));
		const saver = new PostgresSaver(proxied, { schema, retryTimeout: 3000 });
		await saver.setup();
		proxy.plan("silence");
		await expect(saver.getTuple(config())).rejects.toMatchObject({ code: "BUSY" });
		expect((await saver.getTuple(config()))?.checkpoint.id).toBe(IDS[2]);
		await leave();
	});

	it("rejects with UNREACHABLE when nothing listens, and is found when something does", async () => {
		const { pool, schema, leave } = await emptySchema();
		await prepare(new PostgresSaver(pool, { schema }));
		const gone = await PostgresProxy.start(url);
		const saver = PostgresSaver.fromConnString(gone.url, { schema, retryTimeout: 3000 });
		await saver.getTuple(config());
		await gone.stop();
		await expect(saver.getTuple(config())).rejects.toMatchObject({ code: "UNREACHABLE" });
		await saver.close();
		await expect(saver.getTuple(config())).rejects.toMatchObject({ code: "CLOSED" });
		await leave();
	});
});

describe("A server that is killed under load", () => {
	it("loses and doubles nothing that was acknowledged, and the saver goes on by itself", async () => {
		const { kills, faults, checkpoints } = await killUnderLoad(6, 20261116);
		expect(faults).toEqual([]);
		expect(kills).toBe(6);
		expect(checkpoints).toBeGreaterThan(50);
	});
});

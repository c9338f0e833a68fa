import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Annotation, START, StateGraph } from "@langchain/langgraph";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import pg from "pg";
import { PostgresSaver } from "../../../src/postgres.ts";
import { histories, runHistory } from "../../support/histories.ts";
import { emptySchema, newSchema, openStorage, postgresUrl } from "../../support/postgres.ts";
import { PostgresPooler } from "../../support/postgres-pooler.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { inTemporaryFolder, root } from "../../support/run-node.ts";
import { makeCertificate } from "../../support/self-signed.ts";

const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });

/** Runs a graph a few times in each of some threads, all threads at once. */
async function runGraphs(checkpointer: PostgresSaver): Promise<void> {
	const graph = new StateGraph(State)
		.addNode("step", ({ log }) => ({ log: [`step ${log.length} ${"x".repeat(600)}`] }))
		.addEdge(START, "step")
		.compile({ checkpointer });
	const runs = ["a", "b", "c", "d"].map(async (thread_id) => {
		const config = { configurable: { thread_id } };
		for (let turn = 0; turn < 3; turn++) await graph.invoke({ log: [`${thread_id} ${turn}`] }, config);
		const { log } = (await graph.getState(config)).values;
		expect(log.filter((_: string, at: number) => at % 2 === 0)).toEqual(
			[0, 1, 2].map((turn) => `${thread_id} ${turn}`),
		);
	});
	await Promise.all(runs);
	await checkpointer.prune(["a", "b"]);
	expect((await graph.getState({ configurable: { thread_id: "a" } })).values.log).toHaveLength(6);
	expect((await checkpointer.listThreads()).threads).toHaveLength(4);
}

async function readAll(saver: PostgresSaver): Promise<unknown[]> {
	const tuples: unknown[] = [];
	for await (const tuple of saver.list({ configurable: {} })) tuples.push(tuple);
	return tuples;
}

describe("PostgresSaver", () => {
	it.each([
		["finds out by itself that statements can't be prepared", {}],
		["can be told that statements can't be prepared", { prepare: false }],
	])("works through a pooler that lends connections for a transaction: it %s", async (_, options) => {
		const { schema } = await newSchema();
		const pooler = await PostgresPooler.start(await postgresUrl(), 2);
		const saver = PostgresSaver.fromConnString(pooler.url, { schema, ...options });
		await runGraphs(saver);
		await saver.close();
		await pooler.stop();
	});

	it("works over SSL", async () => {
		const { key, certificate } = makeCertificate();
		const server = await PostgresServer.startEncrypted(key, certificate);
		await inTemporaryFolder(async (folder) => {
			const root = join(folder, "root.crt");
			await writeFile(root, certificate);
			const plain = PostgresSaver.fromConnString(server.url, { retryTimeout: 5_000 });
			await expect(plain.setup()).rejects.toMatchObject({ code: "STORAGE" });
			await plain.close();
			const saver = PostgresSaver.fromConnString(`${server.url}?sslmode=verify-full&sslrootcert=${root}`);
			await runGraphs(saver);
			await saver.close();
		});
		await server.stop();
	});

	it.each([
		["a URL", async (url: string) => ({ database: url, end: async () => {} })],
		[
			"a role",
			async (url: string) => {
				const { pool, schema: role } = await newSchema();
				await pool.query(`CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD 'p'`);
				await pool.query(`ALTER ROLE ${role} SET bytea_output = 'escape'`);
				const plain = url.replace(/\?.*/, "").replace(/\/\/[^@]*@/, `//${role}:p@`);
				return { database: plain, end: async () => void (await pool.query(`DROP ROLE ${role}`)) };
			},
		],
		[
			"a server behind a pooler",
			async (url: string) => {
				const pooler = await PostgresPooler.start(url, 2);
				return { database: pooler.url.replace(/\?.*/, ""), end: () => pooler.stop() };
			},
		],
	])("reads the same, however the server writes bytes: bytea_output = 'escape' of %s", async (_, setup) => {
		const { pool, schema, leave } = await emptySchema();
		const usual = new PostgresSaver(pool, { schema });
		await runGraphs(usual);
		const before = await readAll(usual);
		const { database, end } = await setup(`${await postgresUrl()}?options=-c%20bytea_output%3Descape`);
		const saver = PostgresSaver.fromConnString(database, { schema });
		expect(await readAll(saver)).toEqual(before);
		expect(await saver.repair()).toEqual({ damage: [], removed: [] });
		await saver.clear();
		await runGraphs(saver);
		expect((await usual.verify()).damage).toEqual([]);
		await saver.close();
		await end();
		await leave();
	});

	it("works where the server would take NULL in an array for text", async () => {
		const { schema, leave } = await emptySchema();
		const own = new pg.Pool({ connectionString: await postgresUrl(), options: "-c array_nulls=off" });
		const saver = new PostgresSaver(own, { schema });
		await runGraphs(saver);
		expect((await saver.verify()).damage).toEqual([]);
		const copied = await saver.copyThread("c", "copy", { latestOnly: true });
		expect(copied.checkpoints).toBe(1);
		await own.end();
		await leave();
	});

	it.each(["new", "set up before"])("refuses a pool that asks for binary values: %s", async (name) => {
		const { pool, schema, leave } = name === "new" ? { ...(await newSchema()), leave() {} } : await emptySchema();
		const own = new pg.Pool({ connectionString: await postgresUrl(), ...{ binary: true } });
		const saver = new PostgresSaver(own, { schema });
		for (const call of [() => saver.setup(), () => saver.getTuple({ configurable }), () => store(saver)])
			await expect(call()).rejects.toMatchObject({
				code: "INVALID_OPTION",
				message: expect.stringContaining("binary"),
			});
		await own.end();
		await runGraphs(new PostgresSaver(pool, { schema }));
		await leave();
	});

	it("needs no more than to read and write its tables, once they are there", async () => {
		const { pool, schema } = await newSchema();
		const role = `role_${schema}`;
		await pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'p'`);
		const url = (await postgresUrl()).replace(/\/\/[^@]*@/, `//${role}:p@`);
		const early = PostgresSaver.fromConnString(url, { schema });
		await expect(early.setup()).rejects.toMatchObject({ code: "STORAGE", cause: { code: "42501" } });
		await early.close();
		await new PostgresSaver(pool, { schema }).setup();
		await pool.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role}`);
		await pool.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`);
		const saver = PostgresSaver.fromConnString(url, { schema });
		await runGraphs(saver);
		await saver.close();
		await pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
	});

	it("refuses names that PostgreSQL would cut, so that two of them never share their tables", async () => {
		const { pool } = await newSchema();
		for (const name of [`${"customer_".repeat(7)}alice`, "é".repeat(32), "🙂".repeat(16)])
			expect(() => new PostgresSaver(pool, { schema: name })).toThrow(
				expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining(name) }),
			);
		expect(() => new PostgresSaver(pool, { schema: "é".repeat(31) })).not.toThrow();
	});

	it.each(['"É" x.y', "$user", "$1", "tenant$thread", '"$ns"$id', "';--", "\ufffd"])(
		"takes any name for a schema, and keeps several in one database apart: %s",
		async (name) => {
			const { pool, schema } = await newSchema();
			const strange = `${name} ${schema}`;
			const [one, other] = [new PostgresSaver(pool, { schema }), new PostgresSaver(pool, { schema: strange })];
			await runGraphs(one);
			expect(await other.getTuple({ configurable: { thread_id: "a" } })).toBeUndefined();
			await runGraphs(other);
			await one.clear();
			expect((await other.listThreads()).threads).toHaveLength(4);
			await pool.query(`DROP SCHEMA ${pg.escapeIdentifier(strange)} CASCADE`);
		},
	);

	it("refuses a schema of a newer version, and leaves it alone", async () => {
		const { pool, schema } = await newSchema();
		const saver = new PostgresSaver(pool, { schema });
		await saver.setup();
		await pool.query(`UPDATE ${schema}.delta_format SET version = 99`);
		await expect(new PostgresSaver(pool, { schema }).setup()).rejects.toMatchObject({ code: "NEWER_FORMAT" });
	});

	it("stays usable when it could not be set up at first", async () => {
		const { pool, schema } = await newSchema();
		await pool.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.delta_thread (a int)`);
		const saver = new PostgresSaver(pool, { schema });
		await expect(saver.setup()).rejects.toMatchObject({ code: "STORAGE" });
		await pool.query(`DROP TABLE ${schema}.delta_thread`);
		await saver.setup();
		await runGraphs(saver);
	});

	it.each([
		["a path", 42],
		["no pool", {}],
		["nothing", undefined],
	])("says what it takes when it is given %s", (_, database) => {
		expect(() => new PostgresSaver(database as never)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
	});

	it.each([
		{ schema: "" },
		{ schema: "t\ud800" },
		{ schema: "\udc00t" },
		{ schema: "a\0" },
		{ schema: 1 },
		{ retryTimeout: -1 },
		{ retryTimeout: "1" },
		{ shema: "x" },
	])("refuses the options %o", (options) => {
		expect(() => PostgresSaver.fromConnString("postgres://localhost", options as never)).toThrow(
			expect.objectContaining({ code: "INVALID_OPTION" }),
		);
	});
});

describe("Tables that are partitioned as the documentation says", () => {
	it("hold any history as those that are not", async () => {
		const { pool, schema } = await newSchema();
		await new PostgresSaver(pool, { schema }).setup();
		const documentation = readFileSync(join(root, "src/storage/postgres/README.md"), "utf8");
		const recipe = /```sql\n(.*?)```/s.exec(documentation)?.[1];
		await pool.query(`SET search_path = ${schema}; ${recipe}; RESET search_path`);
		const tables = await pool.query(
			`SELECT count(*)::int AS partitions FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent
			WHERE c.relkind = 'p' AND c.relnamespace = '${schema}'::regnamespace`,
		);
		expect(tables.rows).toEqual([{ partitions: 5 * 4 }]);
		const setup = async () => {
			await openStorage(pool, schema).clear();
			const open = () => openStorage(pool, schema);
			return { storage: open(), reopen: async () => open() };
		};
		await fc.assert(
			fc.asyncProperty(histories, (operations) => runHistory(operations, setup)),
			{ numRuns: 15, seed: 20261116 },
		);
	});
});

describe("Damage in PostgreSQL", () => {
	const damages: Record<string, (schema: string) => string> = {
		"a byte of a checkpoint": (schema) => `UPDATE ${schema}.delta_checkpoint SET head = set_byte(head, 9, 255)
			WHERE id = (SELECT max(id) FROM ${schema}.delta_checkpoint)`,
		"a byte of a value": (schema) => `UPDATE ${schema}.delta_blob SET data = set_byte(data, 9, 255)
			WHERE id = (SELECT max(id) FROM ${schema}.delta_blob)`,
		"a byte of a write": (schema) => `UPDATE ${schema}.delta_write SET value = set_byte(value, 3, 255)
			WHERE id = (SELECT max(id) FROM ${schema}.delta_write)`,
		"the row of a thread": (schema) => `DELETE FROM ${schema}.delta_thread WHERE thread_id = 'b'`,
	};

	it.each(Object.entries(damages))("to %s is found by verify, and gone after repair", async (_, damage) => {
		const { pool, schema, leave } = await emptySchema();
		await runGraphs(new PostgresSaver(pool, { schema }));
		const saver = new PostgresSaver(pool, { schema });
		const before = await saver.verify();
		expect(before.damage).toEqual([]);
		const { rowCount } = await pool.query(damage(schema));
		expect(rowCount).toBeGreaterThan(0);
		expect((await saver.verify()).damage).not.toEqual([]);
		expect((await saver.repair()).damage).not.toEqual([]);
		const after = await saver.verify();
		expect(after.damage).toEqual([]);
		expect(after.checkpoints).toBeGreaterThan(before.checkpoints / 2);
		await saver.compact();
		expect(await saver.verify()).toEqual({ ...after, unreachable: 0 });
		await leave();
	});
});

const encryption = { key: new Uint8Array(32).fill(7) };
const secret = "a secret of some length";
const configurable = { thread_id: "thread", checkpoint_ns: "" };

async function store(saver: PostgresSaver): Promise<void> {
	const checkpoint = {
		...emptyCheckpoint(),
		channel_values: { small: secret, large: secret.repeat(100) },
		channel_versions: { small: 1, large: 1 },
	};
	const metadata = { source: "input" as const, step: -1, parents: {}, note: secret };
	const config = await saver.put({ configurable }, checkpoint, metadata, { small: 1, large: 1 });
	await saver.putWrites(config, [["small", secret]], "task");
	await saver.putWrites(config, [["large", secret.repeat(100)]], "task 2");
}

/** Every row of every table, as text. */
async function dump(pool: pg.Pool, schema: string): Promise<string> {
	const texts: string[] = [];
	for (const table of ["thread", "checkpoint", "blob", "write", "base"]) {
		const { rows } = await pool.query(`SELECT row_to_json(t)::text AS text FROM ${schema}.delta_${table} t`);
		texts.push(...rows.map(({ text }) => text as string));
	}
	const hex = texts.flatMap((text) => [...text.matchAll(/\\\\x([0-9a-f]+)/g)].map((match) => match[1] as string));
	return [...texts, ...hex.map((digits) => Buffer.from(digits, "hex").toString("latin1"))].join("\n");
}

describe("Encryption in PostgreSQL", () => {
	it("leaves nothing of values, writes and metadata to be read in any table", async () => {
		const { pool, schema } = await newSchema();
		const plain = await newSchema();
		await store(new PostgresSaver(plain.pool, { schema: plain.schema, compression: false }));
		expect((await dump(pool, plain.schema)).split(secret).length).toBeGreaterThan(100);
		const saver = new PostgresSaver(pool, { schema, encryption, compression: false });
		await store(saver);
		expect(await dump(pool, schema)).not.toContain(secret);
		const found = [];
		for await (const tuple of saver.list({ configurable }, { filter: { note: secret } })) found.push(tuple);
		expect(found).toHaveLength(1);
		expect(found[0]?.pendingWrites).toHaveLength(2);
	});

	it("leaves nothing of what was in clear before, once keys were rotated", async () => {
		const { pool, schema } = await newSchema();
		await store(new PostgresSaver(pool, { schema, compression: false }));
		const saver = new PostgresSaver(pool, { schema, compression: false, encryption: { ...encryption, migrate: true } });
		await saver.rotateKeys();
		expect(await dump(pool, schema)).not.toContain(secret);
		const tuple = await saver.getTuple({ configurable });
		expect(tuple?.checkpoint.channel_values.large).toBe(secret.repeat(100));
		expect(tuple?.metadata).toMatchObject({ note: secret });
	});
});

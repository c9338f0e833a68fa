import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import type pg from "pg";
import { PostgresSaver } from "../src/postgres.ts";
import { newSchema } from "./support/postgres.ts";

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

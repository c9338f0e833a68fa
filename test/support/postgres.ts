import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";
import { PostgresSession } from "../../src/storage/postgres/session.ts";
import { PostgresStorage } from "../../src/storage/postgres/storage.ts";
import { cleanUps } from "./clean-ups.ts";

/** URL of a PostgreSQL to test with: the one that the run shares, or the one that TEST_POSTGRES_URL names. */
export async function postgresUrl(): Promise<string> {
	const { TEST_POSTGRES_URL } = process.env;
	if (TEST_POSTGRES_URL) return TEST_POSTGRES_URL;
	const response = await fetch(inject("postgresBroker"));
	const text = await response.text();
	if (!response.ok) throw new Error(`No PostgreSQL to test with: ${text}`);
	return text;
}

/** A storage as PostgresSaver makes it, without the envelopes. */
export function openStorage(pool: pg.Pool, schema: string): PostgresStorage {
	return new PostgresStorage(new PostgresSession(pool, { retryTimeout: 10_000 }), schema);
}

/** A schema that only one test uses at a time. */
export interface TestSchema {
	readonly pool: pg.Pool;
	readonly schema: string;
}

/** Schemas of this file that nobody uses at the moment. */
const idle: string[] = [];
const made: string[] = [];
let shared: Promise<pg.Pool> | undefined;

/** Connections that the tests of a file share. */
export function sharedPool(): Promise<pg.Pool> {
	if (shared === undefined) {
		shared = postgresUrl().then((connectionString) => new pg.Pool({ connectionString, max: 12 }));
		cleanUps.push(letGo);
	}
	return shared;
}

/** A schema without any table. */
export async function newSchema(): Promise<TestSchema> {
	const schema = `test_${randomBytes(6).toString("hex")}`;
	made.push(schema);
	return { pool: await sharedPool(), schema };
}

/** A schema whose tables have no row: much quicker than a new one, if another test has left it. */
export async function emptySchema(): Promise<TestSchema & { leave(): Promise<void> }> {
	const known = idle.pop();
	const { pool, schema } = known === undefined ? await newSchema() : { pool: await sharedPool(), schema: known };
	if (known === undefined) await openStorage(pool, schema).totals();
	else {
		const tables = ["thread", "checkpoint", "blob", "write", "base"];
		await pool.query(tables.map((table) => `DELETE FROM ${schema}.delta_${table}`).join(";"));
	}
	return { pool, schema, leave: async () => void idle.push(schema) };
}

async function letGo(): Promise<void> {
	const pool = await shared;
	shared = undefined;
	idle.length = 0;
	for (const schema of made.splice(0)) await pool?.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
	await pool?.end();
}

import { createHash } from "node:crypto";
import { PostgresSaver as OfficialPostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import pg from "pg";
import { PostgresSaver } from "../../src/postgres.ts";
import type { Saver, Stage } from "./workload.ts";

/** A schema of its own for each folder. */
function schemaOf({ folder }: Stage): string {
	return `bench_${createHash("sha256").update(folder).digest("hex").slice(0, 16)}`;
}

/** The saver that the stage names, set up as an application would do it when it starts. */
export async function openPostgres(stage: Stage): Promise<{ saver: Saver; close(): Promise<void> }> {
	const schema = schemaOf(stage);
	if (stage.side === "ours") {
		const saver = PostgresSaver.fromConnString(stage.url as string, { schema });
		await saver.setup();
		return { saver, close: () => saver.close() };
	}
	const saver = OfficialPostgresSaver.fromConnString(stage.url as string, { schema });
	await saver.setup();
	return { saver, close: () => saver.end() };
}

/** Bytes of the tables and indexes of a stage, which are then removed. */
export async function takePostgresBytes(stage: Stage): Promise<number> {
	const schema = schemaOf(stage);
	const client = new pg.Client({ connectionString: stage.url as string });
	await client.connect();
	const { rows } = await client.query(
		"SELECT sum(pg_total_relation_size(relid))::float8 AS bytes FROM pg_stat_user_tables WHERE schemaname = $1",
		[schema],
	);
	await client.query(`DROP SCHEMA ${schema} CASCADE`);
	await client.end();
	return rows[0].bytes;
}

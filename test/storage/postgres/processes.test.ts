import { PostgresSaver } from "../../../src/postgres.ts";
import { findDamage } from "../../stress/postgres/racer.ts";
import { bundle } from "../../support/bundle.ts";
import { newSchema, postgresUrl } from "../../support/postgres.ts";
import { runNode } from "../../support/run-node.ts";

describe("Several processes on one schema", () => {
	it("may set it up at once: ten of them get one set of tables, and numbers of their own", async () => {
		const [url, { pool, schema }] = [await postgresUrl(), await newSchema()];
		await using program = await bundle("test/support/postgres-setup-process.ts");
		const moment = String(Date.now() + 2_000);
		const starts = Array.from({ length: 10 }, () => runNode([program.path, url, schema, moment]));
		const firsts = (await Promise.all(starts)).map(Number).sort((a, b) => a - b);
		for (const [n, first] of firsts.entries()) if (n > 0) expect(first - firsts[n - 1]!).toBeGreaterThanOrEqual(100);
		const { rows } = await pool.query(`SELECT version FROM ${schema}.delta_format`);
		expect(rows).toEqual([{ version: 1 }]);
	});

	it("may put, fork, copy, prune and delete in the same threads: nothing that stays is damaged", async () => {
		const [url, { pool, schema }] = [await postgresUrl(), await newSchema()];
		await using program = await bundle("test/stress/postgres/racer.ts");
		const racers = [1, 2, 3, 4].map((seed) => runNode([program.path, url, schema, String(seed), "60"]));
		expect(await Promise.all(racers)).toEqual(Array(4).fill("done\n"));
		const saver = new PostgresSaver(pool, { schema });
		expect(await findDamage(saver)).toEqual([]);
		const { threads } = await saver.listThreads({ limit: 100 });
		expect(threads.length).toBeGreaterThan(3);
		await saver.prune(threads.map(({ threadId }) => threadId));
		expect(await findDamage(saver)).toEqual([]);
		for (const { threadId } of threads) await saver.deleteThread(threadId);
		expect(await saver.stats()).toMatchObject({
			threads: 0,
			checkpoints: 0,
			writes: 0,
			blobs: { whole: 0, patched: 0 },
		});
	});
});

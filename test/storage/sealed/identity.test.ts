import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import Database from "better-sqlite3";
import { deltaDraft, deltaWrite } from "../../../src/contract/delta-fixtures.ts";
import { collect } from "../../../src/contract/thread.ts";
import { SqliteSaver, type SqliteSaverOptions } from "../../../src/sqlite.ts";
import { LONG, scratchFolderForEach, thread } from "../../support/scratch-file.ts";

scratchFolderForEach();

const OPTIONS: [string, SqliteSaverOptions][] = [
	["in clear", {}],
	["encrypted", { encryption: { key: new Uint8Array(32).fill(5) } }],
];

interface Scene {
	readonly db: Database.Database;
	/** Reads rows each time anew. */
	readonly saver: SqliteSaver;
	/** Of the checkpoints of thread `main`, the oldest first. */
	readonly ids: readonly string[];
}

/** Checkpoints that differ in everything that a row says, each with a small and a large write of a task. */
async function fill(options: SqliteSaverOptions): Promise<Scene> {
	const db = new Database(":memory:");
	const saver = new SqliteSaver(db, { cacheBytes: 0, ...options });
	const main = thread(saver, "main");
	const ids: string[] = [];
	for (const [n, source] of (["input", "loop", "update", "fork"] as const).entries()) {
		const run = { metadata: { run_id: `run ${n}` } };
		const id = await main.put({ ...deltaDraft(n, run), parent: ids.at(-1), source, values: { text: `${n} ${LONG}` } });
		const writes: [string, unknown][] = [
			["log", deltaWrite(n)],
			["text", `${n} more ${LONG}`],
		];
		await main.write(id, writes, "task", run, `~__pregel_pull, ${n}`);
		ids.push(id);
	}
	expect((await main.replay(ids[3] as string, "log")).writes.length).toBeGreaterThan(1);
	return { db, saver, ids };
}

/** Everything that can be read of a thread: checkpoints, pending writes, histories. */
async function readAll({ saver }: Pick<Scene, "saver">, threadId = "main"): Promise<unknown[]> {
	const tuples = await collect(saver.list({ configurable: { thread_id: threadId } }));
	return Promise.all(
		tuples.map(async (tuple) => ({
			...withoutThread(tuple),
			log: await saver.getDeltaChannelHistory({ config: tuple.config, channels: ["log"] }),
		})),
	);
}

/** What a copy has in common with its source. */
function withoutThread({ config, parentConfig, ...rest }: CheckpointTuple) {
	const { checkpoint_ns: ns, checkpoint_id: id } = config.configurable ?? {};
	return { ns, id, parentId: parentConfig?.configurable?.checkpoint_id as string | undefined, ...rest };
}

/** Where the row of a checkpoint is, or its large write. */
const WHERE = {
	delta_checkpoints: "checkpoint_id = ?",
	delta_writes: "idx = 1 AND checkpoint_pk = (SELECT pk FROM delta_checkpoints WHERE checkpoint_id = ?)",
};

type Table = keyof typeof WHERE;

function getColumn(db: Database.Database, table: Table, column: string, id: string | undefined): unknown {
	return db.prepare(`SELECT ${column} FROM ${table} WHERE ${WHERE[table]}`).pluck().get(id);
}

function setColumn(db: Database.Database, table: Table, column: string, id: string | undefined, value: unknown): void {
	expect(db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${WHERE[table]}`).run(value, id).changes).toBe(1);
}

describe.each(OPTIONS)("a row %s", (_, options) => {
	it.each<[Table, string]>([
		["delta_checkpoints", "parent_id"],
		["delta_checkpoints", "run_id"],
		["delta_checkpoints", "source"],
		["delta_checkpoints", "step"],
		["delta_checkpoints", "blobs"],
		["delta_writes", "task_id"],
		["delta_writes", "idx"],
		["delta_writes", "task_path"],
		["delta_writes", "channel"],
		["delta_writes", "run_id"],
		["delta_writes", "actor"],
		["delta_writes", "type"],
		["delta_writes", "blob"],
	])("of %s that says something else in %s is damaged", async (table, column) => {
		const scene = await fill(options);
		const { db, saver, ids } = scene;
		const before = await readAll(scene);
		const [, , checkpointId, other] = ids;
		const value = getColumn(db, table, column, checkpointId);
		const wrong: unknown[] = [
			getColumn(db, table, column, other),
			typeof value === "number" ? value + 1 : `${value ?? ""}x`,
			...(["task_id", "idx", "channel"].includes(column) ? [] : [null]),
		];
		for (const damage of wrong.filter((damage) => damage !== value)) {
			db.exec("BEGIN");
			setColumn(db, table, column, checkpointId, damage);
			const place = { threadId: "main", ns: "", checkpointId };
			await expect(thread(saver, "main").read(checkpointId)).rejects.toMatchObject({ code: "CORRUPT", place });
			await expect(readAll(scene)).rejects.toMatchObject({ code: "CORRUPT", place });
			expect((await saver.verify()).damage).toMatchObject([place]);
			for (const id of ids.filter((id) => id !== checkpointId)) await thread(saver, "main").read(id);
			db.exec("ROLLBACK");
		}
		expect(await readAll(scene)).toEqual(before);
	});

	it("whose column was swapped with that of another is damaged, and so is the other", async () => {
		const scene = await fill(options);
		const { db, saver, ids } = scene;
		const before = await readAll(scene);
		const [, one, other] = ids;
		const columns = {
			delta_checkpoints: ["parent_id", "run_id", "source", "step", "blobs"],
			delta_writes: ["task_path", "run_id", "actor", "blob"],
		};
		for (const table of Object.keys(columns) as Table[])
			for (const column of columns[table]) {
				const [a, b] = [one, other].map((id) => getColumn(db, table, column, id));
				expect(a).not.toBe(b);
				db.exec("BEGIN");
				setColumn(db, table, column, one, b);
				setColumn(db, table, column, other, a);
				for (const id of [one, other])
					await expect(thread(saver, "main").read(id)).rejects.toMatchObject({ code: "CORRUPT" });
				db.exec("ROLLBACK");
			}
		expect(await readAll(scene)).toEqual(before);
	});

	it("that is damaged takes nothing from the others when a thread of its family is pruned or deleted", async () => {
		const { db, saver, ids } = await fill(options);
		await saver.copyThread("main", "copy");
		const copy = thread(saver, "copy");
		const before = await Promise.all(ids.map((id) => copy.values(id)));
		const change = (column: string, id: string | undefined, value: unknown) =>
			db
				.prepare(`UPDATE delta_checkpoints SET ${column} = ? WHERE thread_id = 'copy' AND checkpoint_id = ?`)
				.run(value, id);
		const own = db.prepare("SELECT head FROM delta_checkpoints WHERE thread_id = 'copy' AND checkpoint_id = ?").pluck();
		const sound = own.get(ids[2]);
		change("blobs", ids[1], "[]");
		change("head", ids[2], Buffer.of(0, 1, 2, 3, 4));
		await saver.prune(["main"]);
		await saver.deleteThread("main");
		for (const id of [ids[1], ids[2]]) await expect(copy.read(id)).rejects.toMatchObject({ code: "CORRUPT" });
		for (const n of [0, 3]) expect(await copy.values(ids[n])).toEqual(before[n]);
		// What it names is still there.
		change("head", ids[2], sound);
		expect(await copy.values(ids[2])).toEqual(before[2]);
	});

	it("that lost its parent is sealed again with the next one", async () => {
		const scene = await fill(options);
		const { db, saver, ids } = scene;
		const [first, second, third, last] = ids;
		const before = (await readAll(scene)) as { id: string }[];
		await saver.deleteForRuns(["run 2"]);
		const relinked = before.filter(({ id }) => id !== third);
		expect(await readAll(scene)).toEqual(
			relinked.map((tuple) => (tuple.id === last ? { ...tuple, parentId: second } : tuple)),
		);
		setColumn(db, "delta_checkpoints", "parent_id", last, third);
		await expect(thread(saver, "main").read(last)).rejects.toMatchObject({ code: "CORRUPT" });
		setColumn(db, "delta_checkpoints", "parent_id", last, second);

		await saver.prune(["main"]);
		const pruned = before.filter(({ id }) => id === last).map((tuple) => ({ ...tuple, parentId: undefined }));
		expect(await readAll(scene)).toEqual(pruned);
		setColumn(db, "delta_checkpoints", "parent_id", last, first);
		await expect(thread(saver, "main").read(last)).rejects.toMatchObject({ code: "CORRUPT" });
		setColumn(db, "delta_checkpoints", "parent_id", last, null);
		expect((await saver.verify()).damage).toEqual([]);
		await thread(saver, "main").put({ parent: last, values: { text: "next" } });
		expect(await thread(saver, "main").values()).toEqual({ text: "next" });
	});

	it("reads the same in a copy, of all or of a part, also when the source is gone", async () => {
		const scene = await fill(options);
		const { saver, ids } = scene;
		const child = thread(saver, "main").within("child:1");
		for (const root of ids) await child.put({ values: { root }, metadata: { parents: { "": root } } });
		const all = (await readAll(scene)) as { id: string; ns: string; metadata: { parents: Record<string, string> } }[];
		const isUpTo = new Set(ids.slice(0, 3));
		const part = all.filter(({ ns, id, metadata }) => isUpTo.has(ns === "" ? id : (metadata.parents[""] as string)));
		expect(part).toHaveLength(6);
		await saver.copyThread("main", "whole");
		await saver.copyThread("main", "part", { upTo: ids[2] as string });
		await saver.copyThread("main", "last", { latestOnly: true });
		const latest = all.filter(({ ns }, i) => all.findIndex((other) => other.ns === ns) === i);
		const copies = { whole: all, part, last: latest.map((tuple) => ({ ...tuple, parentId: undefined })) };
		for (const [threadId, expected] of Object.entries(copies)) expect(await readAll(scene, threadId)).toEqual(expected);
		await saver.deleteThread("main");
		await saver.compact();
		for (const [threadId, expected] of Object.entries(copies)) expect(await readAll(scene, threadId)).toEqual(expected);
		expect((await saver.verify()).damage).toEqual([]);
	});
});

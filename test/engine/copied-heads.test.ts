import Database from "better-sqlite3";
import { SqliteSaver } from "../../src/sqlite.ts";
import { LONG, path, thread } from "../support/scratch-file.ts";

const encryption = { key: new Uint8Array(32).fill(1), migrate: true };

/** How the thread that was copied loses its rows, or what they hold. */
const WAYS: Record<string, (saver: SqliteSaver, ids: string[]) => Promise<unknown>> = {
	"is deleted": (saver) => saver.deleteThread("source"),
	"is pruned": (saver) => saver.prune(["source"]),
	"loses a checkpoint from the middle": (saver) => saver.deleteForRuns(["run 2"], { threadIds: ["source"] }),
	"puts its checkpoints again": async (saver, ids) => {
		for (const id of ids) await thread(saver, "source").put({ id, values: { other: "value" } });
	},
	"is encrypted": async () => {
		const saver = new SqliteSaver(path, { encryption });
		await saver.rotateKeys();
		await saver.close();
	},
	"was being deleted when the process was killed": async (saver) => {
		const db = new Database(path);
		db.exec(`INSERT INTO delta_gone SELECT pk, family FROM delta_thread WHERE thread_id = 'source';
			DELETE FROM delta_thread WHERE thread_id = 'source'`);
		db.close();
		await saver.compact();
	},
};

describe("A thread that was copied in an SQLite database", () => {
	it.each(Object.entries(WAYS))("leaves its copies all that they have when it %s", async (_, go) => {
		const saver = new SqliteSaver(path);
		const draft = (n: number) => ({ values: { a: `${n} ${LONG}`, b: n }, metadata: { run_id: `run ${n}` } });
		const ids = await thread(saver, "source").chain(5, draft);
		await saver.copyThread("source", "one");
		await saver.copyThread("one", "two");
		expect(countHeads()).toBe(ids.length);
		const readCopies = (by: SqliteSaver) =>
			Promise.all(["one", "two"].flatMap((copy) => ids.map((id) => thread(by, copy).read(id))));
		const before = await readCopies(saver);
		await go(saver, ids);
		await saver.close();

		const again = new SqliteSaver(path, { encryption });
		expect(await readCopies(again)).toEqual(before);
		expect(await again.verify()).toMatchObject({ unreachable: 0, damage: [] });
		for (const copy of ["one", "two"]) await again.deleteThread(copy);
		expect(await again.verify()).toMatchObject({ unreachable: 0, damage: [] });
		await again.close();
	});
});

/** How many rows have bytes of their own. */
function countHeads(): number {
	const db = new Database(path);
	const count = db.prepare("SELECT count(*) FROM delta_checkpoint WHERE typeof(head) = 'blob'").pluck().get();
	db.close();
	return count as number;
}

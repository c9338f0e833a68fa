import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { SqliteSaver as OfficialSqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import Database from "better-sqlite3";
import type { DeltaSaver } from "../../../src/index.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";

const config = { configurable: { thread_id: "t" } };
let folder = "";
let path = "";

beforeEach(async () => {
	folder = await mkdtemp(join(tmpdir(), "files-"));
	path = join(folder, "test.db");
});
afterEach(() => rm(folder, { recursive: true }));

function put(saver: DeltaSaver | OfficialSqliteSaver, note = "note") {
	const checkpoint = { ...emptyCheckpoint(), channel_values: { note }, channel_versions: { note: 1 } };
	return saver.put(config, checkpoint, { source: "input", step: -1, parents: {} }, { note: 1 });
}

async function read(saver: DeltaSaver) {
	return (await saver.getTuple(config))?.checkpoint.channel_values.note;
}

describe("a database file", () => {
	it("is made and set up by the first call", async () => {
		const saver = new SqliteSaver(path);
		await put(saver);
		await saver.close();
		const again = SqliteSaver.fromConnString(path);
		expect(await read(again)).toBe("note");
		await again.close();
	});

	it("is not needed for the constructor, whatever is wrong with it", async () => {
		const saver = new SqliteSaver(join(folder, "missing", "test.db"));
		await expect(put(saver)).rejects.toMatchObject({ code: "CANT_OPEN" });
		await expect(saver.setup()).rejects.toMatchObject({ code: "CANT_OPEN" });
	});

	it("that is not a database is refused and left alone", async () => {
		await writeFile(path, "Dear diary, this is not a database. ".repeat(100));
		const before = await readFile(path);
		await expect(put(new SqliteSaver(path))).rejects.toMatchObject({ code: "FOREIGN_DATABASE" });
		expect(await readFile(path)).toEqual(before);
	});

	it("of another program is refused, unless it is handed over open", async () => {
		const db = new Database(path);
		db.exec("CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('Ada')");
		await expect(put(new SqliteSaver(path))).rejects.toMatchObject({ code: "FOREIGN_DATABASE" });
		const shared = new SqliteSaver(db);
		await put(shared, "shared");
		await shared.close();
		expect(db.prepare("SELECT name FROM customers").pluck().get()).toBe("Ada");
		expect(await read(new SqliteSaver(db))).toBe("shared");
		db.close();
	});

	it("of the application hands out no number twice, though a transaction of its own is undone", async () => {
		const db = new Database(path);
		const [one, other] = [new SqliteSaver(db), new SqliteSaver(db)];
		const putOn = (saver: SqliteSaver, thread_id: string) =>
			saver.put({ configurable: { thread_id } }, emptyCheckpoint(), { source: "input", step: -1, parents: {} }, {});
		await one.listThreads();
		db.exec("BEGIN");
		await putOn(one, "undone");
		db.exec("ROLLBACK");
		for (const [saver, name] of [
			[other, "a"],
			[other, "b"],
			[one, "c"],
			[one, "d"],
		] as const)
			await putOn(saver, name);
		expect((await one.stats()).threads).toBe(4);
		db.close();
	});

	it("of the official saver is refused with the way to move", async () => {
		const official = OfficialSqliteSaver.fromConnString(path);
		await put(official);
		await expect(put(new SqliteSaver(path))).rejects.toMatchObject({ code: "OFFICIAL_DATABASE" });
		await expect(put(new SqliteSaver(official.db))).rejects.toMatchObject({ code: "OFFICIAL_DATABASE" });
		expect(await official.getTuple(config)).toBeDefined();
		official.db.close();
	});

	it("of a newer version is refused and left alone", async () => {
		const saver = new SqliteSaver(path);
		await put(saver);
		await saver.close();
		const db = new Database(path);
		db.exec("UPDATE delta_format SET version = 999; CREATE TABLE delta_future (x)");
		await expect(read(new SqliteSaver(path))).rejects.toMatchObject({ code: "NEWER_FORMAT" });
		db.exec("DROP TABLE delta_future");
		await expect(read(new SqliteSaver(path))).rejects.toMatchObject({ code: "CORRUPT" });
		db.exec("UPDATE delta_format SET version = 1");
		db.close();
		expect(await read(new SqliteSaver(path))).toBe("note");
	});

	it("that can't be written to is read, and refuses writes", async () => {
		const writer = new SqliteSaver(path);
		await put(writer);
		const db = new Database(path, { readonly: true });
		const saver = new SqliteSaver(db);
		expect(await read(saver)).toBe("note");
		await expect(put(saver, "other")).rejects.toMatchObject({ code: "READ_ONLY" });
		expect(await read(saver)).toBe("note");
		db.close();
		await writer.close();
	});

	it("that is new and can't be written to can't be set up", async () => {
		new Database(path).exec("PRAGMA user_version = 0").close();
		const db = new Database(path, { readonly: true });
		await expect(put(new SqliteSaver(db))).rejects.toMatchObject({ code: "READ_ONLY" });
		db.close();
	});

	it("whose handle the application closed says so", async () => {
		const db = new Database(path);
		const saver = new SqliteSaver(db);
		await put(saver);
		db.close();
		await expect(read(saver)).rejects.toMatchObject({ code: "CLOSED" });
	});

	it("held by another connection is waited for, then reported, then works again", async () => {
		const saver = new SqliteSaver(path, { busyTimeout: 50 });
		await put(saver, "before");
		const other = new Database(path);
		other.exec("BEGIN IMMEDIATE");
		await expect(put(saver)).rejects.toMatchObject({ code: "BUSY" });
		expect(await read(saver)).toBe("before");
		other.exec("COMMIT");
		other.close();
		await put(saver, "after");
		expect(await read(saver)).toBe("after");
		await saver.close();
	});

	it("can be shared by two savers that see each other's commits", async () => {
		const [one, two] = [new SqliteSaver(path), new SqliteSaver(path)];
		await put(one, "one");
		expect(await read(two)).toBe("one");
		await put(two, "two");
		expect(await read(one)).toBe("two");
		await Promise.all([one.close(), two.close()]);
	});

	it("of the application may be inside a transaction of its own, or count in BigInt", async () => {
		const db = new Database(path);
		db.defaultSafeIntegers(true);
		const saver = new SqliteSaver(db);
		await saver.setup();
		db.exec("BEGIN");
		await put(saver, "rolled back");
		db.exec("ROLLBACK");
		expect(await read(saver)).toBeUndefined();
		await put(saver, "kept");
		expect(await read(saver)).toBe("kept");
		expect((await saver.listThreads()).threads).toMatchObject([{ threadId: "t", checkpoints: 1 }]);
		db.close();
	});

	it.each([{ databse: "x" }, 5, undefined, null, {}])("must be a path or a Database, not %j", (database) => {
		expect(() => new SqliteSaver(database as never)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
	});

	it("takes no options that it does not know", () => {
		expect(() => new SqliteSaver(path, { busytimeout: 1 } as never)).toThrow(
			expect.objectContaining({ code: "INVALID_OPTION" }),
		);
	});
});

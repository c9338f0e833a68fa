import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import Database from "better-sqlite3";
import type { DeltaSaver } from "../../../src/index.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { bundle } from "../../support/bundle.ts";
import { runNode } from "../../support/run-node.ts";

const config = { configurable: { thread_id: "t" } };
let folder = "";
let path = "";

beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "read-only-"));
	path = join(folder, "test.db");
});
afterEach(() => {
	chmodSync(folder, 0o755);
	rmSync(folder, { recursive: true });
});

function put(saver: DeltaSaver, note: string) {
	const checkpoint = { ...emptyCheckpoint(), channel_values: { note }, channel_versions: { note: 1 } };
	return saver.put(config, checkpoint, { source: "input", step: -1, parents: {} }, { note: 1 });
}

async function read(saver: DeltaSaver) {
	return (await saver.getTuple(config))?.checkpoint.channel_values.note;
}

async function store(note: string) {
	const writer = new SqliteSaver(path);
	await put(writer, note);
	await writer.close();
}

/** Everything in the folder that a write would change. */
function look() {
	return readdirSync(folder).map((name) => {
		const { mtimeMs, size } = statSync(join(folder, name));
		return { name, mtimeMs, bytes: readFileSync(join(folder, name)).toString("base64"), size };
	});
}

describe("readOnly", () => {
	it("reads a file and leaves it and its folder as they are", async () => {
		await store("note");
		const before = look();
		expect(before.map(({ name }) => name)).toEqual(["test.db"]);
		const saver = new SqliteSaver(path, { readOnly: true });
		expect(await read(saver)).toBe("note");
		expect((await saver.listThreads()).threads).toHaveLength(1);
		expect(look()).toEqual(before);
		await saver.close();
		expect(look()).toEqual(before);
	});

	it("refuses everything that would write with READ_ONLY, and goes on reading", async () => {
		await store("note");
		const before = look();
		const saver = new SqliteSaver(path, { readOnly: true });
		const writes = {
			put: () => put(saver, "other"),
			putWrites: () => saver.putWrites({ configurable: { thread_id: "t", checkpoint_id: "c" } }, [["a", 1]], "task"),
			deleteThread: () => saver.deleteThread("t"),
			copyThread: () => saver.copyThread("t", "copy"),
			prune: () => saver.prune(["t"], { strategy: "delete" }),
			clear: () => saver.clear(),
		};
		for (const [name, write] of Object.entries(writes))
			await expect(write(), name).rejects.toMatchObject({ code: "READ_ONLY" });
		expect(await read(saver)).toBe("note");
		await saver.close();
		expect(look()).toEqual(before);
	});

	it("sees what another saver stores meanwhile, and after it was closed", async () => {
		await store("first");
		const saver = new SqliteSaver(path, { readOnly: true });
		expect(await read(saver)).toBe("first");
		const writer = new SqliteSaver(path);
		await put(writer, "second");
		expect(await read(saver)).toBe("second");
		await put(writer, "third");
		expect(await read(saver)).toBe("third");
		await writer.close();
		expect(await read(saver)).toBe("third");
		await store("fourth");
		expect(await read(saver)).toBe("fourth");
		await saver.close();
	});

	it("reads what a killed process left in the log", async () => {
		const writer = new SqliteSaver(path);
		await put(writer, "in the log");
		const left = join(folder, "left.db");
		for (const end of ["", "-wal"]) copyFileSync(path + end, left + end);
		await writer.close();
		rmSync(path);
		const before = look();
		expect(before.map(({ name }) => name)).toEqual(["left.db", "left.db-wal"]);
		const saver = new SqliteSaver(left, { readOnly: true });
		expect(await read(saver)).toBe("in the log");
		await saver.close();
		expect(look()).toEqual(before);
	});

	it("leaves nothing among the temporary files", async () => {
		await store("note");
		const count = () => readdirSync(tmpdir()).filter((name) => name.startsWith("langgraph-checkpoint-delta-")).length;
		const before = count();
		const saver = new SqliteSaver(path, { readOnly: true });
		await read(saver);
		await saver.close();
		expect(count()).toBeLessThanOrEqual(before);
	});

	it("does not make a file that is missing, nor set up one that is empty", async () => {
		const saver = new SqliteSaver(path, { readOnly: true });
		await expect(read(saver)).rejects.toMatchObject({ code: "CANT_OPEN" });
		expect(existsSync(path)).toBe(false);
		new Database(path).exec("PRAGMA user_version = 0").close();
		await expect(read(saver)).rejects.toMatchObject({ code: "READ_ONLY" });
		rmSync(path, { force: true });
		await store("note");
		expect(await read(saver)).toBe("note");
		await saver.close();
	});

	it("needs no permission to write, neither for the file nor for its folder", async () => {
		await store("note");
		chmodSync(path, 0o444);
		chmodSync(folder, 0o555);
		await using reader = await bundle("test/stress/read-only-reader.ts");
		expect(JSON.parse(await runNode([reader.path, path]))).toEqual({
			read: "note",
			put: "READ_ONLY",
			writable: "READ_ONLY",
		});
	});

	it("can't be had of an open Database, and is true or false", () => {
		const db = new Database(path);
		expect(() => new SqliteSaver(db, { readOnly: true })).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
		expect(() => new SqliteSaver(path, { readOnly: 1 as never })).toThrow(
			expect.objectContaining({ code: "INVALID_OPTION" }),
		);
		db.close();
	});
});

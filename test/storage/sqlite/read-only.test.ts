import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
	chmodSync,
	copyFileSync,
	existsSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import Database from "better-sqlite3";
import type { DeltaSaver } from "../../../src/index.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { bundle } from "../../support/bundle.ts";
import { runNode } from "../../support/run-node.ts";

const config = { configurable: { thread_id: "t" } };
let folder = "";
let path = "";
const usualTemporaryFolder = process.env.TMPDIR;
let temporaryFolder = "";

/** Where copies are made until the test is over: nobody else does there. */
function useTemporaryFolder(): string {
	temporaryFolder = mkdtempSync(join(tmpdir(), "read-only-temporary-"));
	process.env.TMPDIR = temporaryFolder;
	return temporaryFolder;
}

beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "read-only-"));
	path = join(folder, "test.db");
});
afterEach(() => {
	process.env.TMPDIR = usualTemporaryFolder;
	rmSync(temporaryFolder, { recursive: true, force: true });
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

	it("reads what a killed process left in the log where that is, if its index is there too", async () => {
		const writer = new SqliteSaver(path);
		await put(writer, "in the log");
		const left = join(folder, "left.db");
		for (const end of ["", "-wal", "-shm"]) copyFileSync(path + end, left + end);
		await writer.close();
		rmSync(path);
		// SQLite writes the index anew, which holds nothing that is stored.
		const stored = () => look().filter(({ name }) => name !== "left.db-shm");
		const before = stored();
		const saver = new SqliteSaver(left, { readOnly: true });
		expect(await read(saver)).toBe("in the log");
		await saver.close();
		expect(stored()).toEqual(before);
	});

	it("reads the file that was put in the place of another, with and without a log", async () => {
		await store("old");
		const next = join(folder, "next.db");
		for (const isOpen of [false, true]) {
			const writer = isOpen ? new SqliteSaver(path) : undefined;
			if (writer !== undefined) await put(writer, "open");
			const saver = new SqliteSaver(path, { readOnly: true });
			expect(await read(saver)).toBe(isOpen ? "open" : "old");
			const other = new SqliteSaver(next);
			await put(other, "new");
			await other.close();
			await writer?.close();
			for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
			renameSync(next, path);
			expect(await read(saver)).toBe("new");
			await saver.close();
		}
	});

	it("leaves nothing among the temporary files", async () => {
		await store("note");
		const temporary = useTemporaryFolder();
		const saver = new SqliteSaver(path, { readOnly: true });
		expect(await read(saver)).toBe("note");
		expect(readdirSync(temporary)).toEqual([]);
		await saver.close();
		expect(readdirSync(temporary)).toEqual([]);
	});

	it("reads beside a process that commits all the time: at once, without a copy, and what is new", async () => {
		const first = new SqliteSaver(path);
		for (let n = 0; n < 1000; n++)
			await first.put(
				{ configurable: { thread_id: `thread ${n % 50}` } },
				{ ...emptyCheckpoint(), channel_values: { n, text: randomBytes(2000) }, channel_versions: { n, text: n } },
				{ source: "loop", step: n, parents: {} },
				{ n, text: n },
			);
		await first.close();
		expect(statSync(path).size).toBeGreaterThan(2e6);
		await using program = await bundle("test/stress/busy-writer.ts");
		const writer = fork(program.path, [path, "1"]);
		let told = 0;
		writer.on("message", (n) => {
			told = n as number;
		});
		await once(writer, "message");
		const temporary = useTemporaryFolder();
		const names = readdirSync(folder);
		const delays = monitorEventLoopDelay();
		delays.enable();
		const saver = new SqliteSaver(path, { readOnly: true });
		const seen = new Set<unknown>();
		for (const end = Date.now() + 3000; Date.now() < end; await nextTurn()) {
			const known = told;
			const n = (await saver.getTuple(config))?.checkpoint.channel_values.n;
			expect(n).toBeGreaterThanOrEqual(known);
			seen.add(n);
			expect((await saver.listThreads({ limit: 100 })).threads).toHaveLength(51);
			expect(readdirSync(temporary)).toEqual([]);
		}
		delays.disable();
		expect(readdirSync(folder)).toEqual(names);
		expect(seen.size).toBeGreaterThan(20);
		// Nanoseconds: a slow machine may take its time, but what is copied or waited for at once takes longer.
		expect(delays.max / 1e6).toBeLessThan(1500);
		writer.kill("SIGKILL");
		await once(writer, "exit");
		expect((await saver.getTuple(config))?.checkpoint.channel_values.n).toBeGreaterThanOrEqual(told);
		await saver.close();
	});

	it("waits as long as the busy timeout says, and no longer", async () => {
		await store("note");
		const other = new Database(path);
		other.pragma("journal_mode = DELETE");
		other.pragma("locking_mode = EXCLUSIVE");
		other.exec("BEGIN EXCLUSIVE");
		for (const end of ["-wal", "-shm"]) writeFileSync(path + end, "");
		const saver = new SqliteSaver(path, { readOnly: true, busyTimeout: 200 });
		const started = performance.now();
		await expect(read(saver)).rejects.toMatchObject({ code: "BUSY" });
		expect(performance.now() - started).toBeGreaterThan(190);
		const waiting = new SqliteSaver(path, { readOnly: true });
		const answer = read(waiting);
		await sleep(300);
		other.exec("COMMIT");
		other.close();
		for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
		expect(await answer).toBe("note");
		await Promise.all([saver.close(), waiting.close()]);
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

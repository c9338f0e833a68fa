import { execFileSync, spawn } from "node:child_process";
import {
	chmodSync,
	copyFileSync,
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	truncateSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import Database from "better-sqlite3";
import type { DeltaSaver } from "../../../src/index.ts";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { bundle } from "../../support/bundle.ts";
import { makeTemporaryFolder, removeFolder } from "../../support/run-node.ts";
import { folder, LONG, path, scratchFolderForEach, thread } from "../../support/scratch-file.ts";

scratchFolderForEach();

/** Puts until it can't, and answers the error. */
async function fillUp(saver: DeltaSaver): Promise<unknown> {
	for (let n = 0; n < 2000; n++) {
		const failure = await thread(saver)
			.put({ values: { text: `${n} ${LONG}` } })
			.then(
				() => undefined,
				(error: unknown) => error,
			);
		if (failure !== undefined) return failure;
	}
	return undefined;
}

/** Everything that was stored is there and whole, and more can be stored. */
async function expectToWork(saver: DeltaSaver, checkpoints: number): Promise<void> {
	expect(await saver.verify()).toMatchObject({ checkpoints, damage: [] });
	const id = await thread(saver).put({ values: { text: `again ${LONG}` } });
	await thread(saver).write(id, [["text", "a write"]]);
	expect(await thread(saver).values(id)).toEqual({ text: `again ${LONG}` });
	expect(await saver.verify()).toMatchObject({ checkpoints: checkpoints + 1, damage: [] });
}

describe("a full disk", () => {
	it("is DISK_FULL, and once there is room the same saver works", async () => {
		const db = new Database(path);
		db.pragma("journal_mode = WAL");
		const saver = new SqliteSaver(db);
		await saver.setup();
		db.pragma("max_page_count = 60");
		expect(await fillUp(saver)).toMatchObject({ code: "DISK_FULL", cause: { code: "SQLITE_FULL" } });
		const stored = (await thread(saver).ids()).length;
		expect(stored).toBeGreaterThan(0);
		db.pragma("max_page_count = 1000000");
		await expectToWork(saver, stored);
		await saver.close();
		db.close();
	});

	it.skipIf(!canMount())("is DISK_FULL on a real file system too, as for a backup", async () => {
		const disk = join(folder, "disk");
		mkdirSync(disk);
		execFileSync("mount", ["-t", "tmpfs", "-o", "size=600k", "none", disk]);
		try {
			const saver = new SqliteSaver(join(disk, "test.db"));
			await saver.setup();
			const ballast = join(disk, "ballast");
			writeFileSync(ballast, Buffer.alloc(200_000));
			expect(await fillUp(saver)).toMatchObject({ code: "DISK_FULL" });
			const stored = (await thread(saver).ids()).length;
			await expect(saver.backup(join(disk, "backup.db"))).rejects.toMatchObject({ code: "DISK_FULL" });
			expect(readdirSync(disk)).not.toContain("backup.db");
			rmSync(ballast);
			await expectToWork(saver, stored);
			await saver.close();
		} finally {
			execFileSync("umount", [disk]);
		}
	});
});

describe("a write that the operating system refuses", () => {
	it.skipIf(!has("prlimit"))("is IO_ERROR, and once it does not the same saver works", async () => {
		await using program = await bundle("test/stress/limited-writer.ts");
		// No file may be larger than 256 KiB, until the limit is lifted.
		const command = `trap '' XFSZ; ulimit -S -f 256; exec "${process.execPath}" "${program.path}" "${path}"`;
		const child = spawn("bash", ["-c", command], { stdio: ["pipe", "pipe", "inherit"] });
		const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
		const before = JSON.parse((await lines.next()).value);
		expect(before).toMatchObject({ code: "IO_ERROR", again: "IO_ERROR" });
		expect(before.stored).toBeGreaterThan(0);
		execFileSync("prlimit", [`--pid=${child.pid}`, "--fsize=unlimited"]);
		child.stdin.end("go on\n");
		const stored = before.stored + 1;
		expect(JSON.parse((await lines.next()).value)).toEqual({ stored, checkpoints: stored, damage: [] });
	});
});

describe("memory that runs out", () => {
	it("is OUT_OF_MEMORY, and once there is some the same saver works", async () => {
		const db = new Database(path);
		const saver = new SqliteSaver(db);
		await thread(saver).put({ values: { text: LONG } });
		db.function("run_out", () => {
			throw new Database.SqliteError("out of memory", "SQLITE_NOMEM");
		});
		db.exec("CREATE TEMP TRIGGER full AFTER INSERT ON delta_blobs BEGIN SELECT run_out(); END");
		const put = thread(saver).put({ values: { text: `other ${LONG}` } });
		await expect(put).rejects.toMatchObject({ code: "OUT_OF_MEMORY", cause: { code: "SQLITE_NOMEM" } });
		db.exec("DROP TRIGGER full");
		await expectToWork(saver, 1);
		await saver.close();
		db.close();
	});
});

describe("permissions that are gone", () => {
	/** Whoever may do everything becomes somebody else for a while. */
	async function asNobody<T>(work: () => Promise<T>): Promise<T> {
		const isRoot = process.geteuid?.() === 0;
		if (isRoot) process.seteuid?.(65534);
		try {
			return await work();
		} finally {
			if (isRoot) process.seteuid?.(0);
		}
	}

	it("make a file READ_ONLY, or one that can't be opened, until they are back", async () => {
		const first = new SqliteSaver(path);
		await thread(first).put({ values: { text: LONG } });
		await first.close();
		const saver = new SqliteSaver(path);
		chmodSync(folder, 0o755);
		chmodSync(path, 0o444);
		await asNobody(async () => {
			await expect(thread(saver).put({ values: { text: "no" } })).rejects.toMatchObject({ code: "READ_ONLY" });
		});
		chmodSync(path, 0o000);
		await asNobody(async () => {
			await expect(new SqliteSaver(path).setup()).rejects.toMatchObject({ code: "CANT_OPEN" });
		});
		chmodSync(path, 0o644);
		await expectToWork(saver, 1);
		await saver.close();
	});
});

describe("a file that is", () => {
	it("removed is FILE_GONE, and once it is back the same saver works", async () => {
		const saver = new SqliteSaver(path);
		await thread(saver).put({ values: { text: LONG } });
		await new Promise((resolve) => setTimeout(resolve, 20));
		for (const end of ["", "-wal", "-shm"]) renameSync(path + end, `${path}${end}.away`);
		await expect(thread(saver).put({ values: { text: "lost" } })).rejects.toMatchObject({ code: "FILE_GONE" });
		for (const end of ["", "-wal", "-shm"]) renameSync(`${path}${end}.away`, path + end);
		// The refused put was written to what was the file, and is again.
		const { checkpoints } = await saver.verify();
		await expectToWork(saver, checkpoints);
		await saver.close();
	});

	it("replaced is FILE_GONE once, and then the new one is used", async () => {
		const saver = new SqliteSaver(path);
		await thread(saver).put({ values: { text: LONG } });
		const backup = join(folder, "backup.db");
		await saver.backup(backup);
		await thread(saver).put({ values: { text: "newer" } });
		await new Promise((resolve) => setTimeout(resolve, 20));
		for (const end of ["", "-wal", "-shm"]) rmSync(path + end);
		renameSync(backup, path);
		await expect(thread(saver).put({ values: { text: "lost" } })).rejects.toMatchObject({ code: "FILE_GONE" });
		await expectToWork(saver, 1);
		await saver.close();
	});

	it("truncated is CORRUPT, and with what it had the same saver works", async () => {
		const first = new SqliteSaver(path);
		await thread(first).chain(30, (n) => ({ values: { text: `${n} ${LONG}` } }));
		await first.close();
		copyFileSync(path, `${path}.copy`);
		const saver = new SqliteSaver(path, { cacheBytes: 0 });
		truncateSync(path, Math.floor(statSync(path).size / 2 / 4096) * 4096);
		const read = async () => {
			for (const id of await thread(saver).ids()) await thread(saver).read(id);
		};
		await expect(read()).rejects.toMatchObject({ code: "CORRUPT" });
		writeFileSync(path, readFileSync(`${path}.copy`));
		await expectToWork(saver, 30);
		await saver.close();
	});

	it("truncated to nothing is made anew only if it is not known yet", async () => {
		const saver = new SqliteSaver(path);
		await thread(saver).put({ values: { text: LONG } });
		await saver.close();
		truncateSync(path, 0);
		const again = new SqliteSaver(path);
		await expectToWork(again, 0);
		await again.close();
	});
});

describe("a backup that was killed", () => {
	it("leaves the older one, and does not disturb the next", async () => {
		const saver = new SqliteSaver(path);
		await thread(saver).put({ values: { text: LONG } });
		const backup = join(folder, "backup.db");
		await saver.backup(backup);
		for (const end of ["", "-journal", "-wal"]) writeFileSync(`${backup}.unfinished${end}`, "half of a page");
		const older = new SqliteSaver(backup, { readOnly: true });
		expect(await older.verify()).toMatchObject({ checkpoints: 1, damage: [] });
		await older.close();
		await thread(saver).put({ values: { text: "newer" } });
		await saver.backup(backup);
		const newer = new SqliteSaver(backup);
		await expectToWork(newer, 2);
		await newer.close();
		await saver.close();
		expect(existsSync(`${backup}.unfinished`)).toBe(false);
	});
});

describe("a handle that the application has closed", () => {
	it("is CLOSED, and a saver of its own on the same file works", async () => {
		const db = new Database(path);
		const shared = new SqliteSaver(db);
		await thread(shared).put({ values: { text: LONG } });
		db.close();
		await expect(thread(shared).read()).rejects.toMatchObject({ code: "CLOSED" });
		await expect(thread(shared).put({ values: {} })).rejects.toMatchObject({ code: "CLOSED" });
		const saver = new SqliteSaver(path);
		await expectToWork(saver, 1);
		await saver.close();
	});
});

describe("a serializer that throws in the middle of a put", () => {
	for (const [name, isAsync] of [
		["at once", false],
		["later", true],
	] as const)
		it(`is UNSERIALIZABLE, and nothing of the put is stored, if it throws ${name}`, async () => {
			class FragileSerializer implements SerializerProtocol {
				left = Number.POSITIVE_INFINITY;

				async dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
					if (isAsync) await new Promise((resolve) => setImmediate(resolve));
					if (this.left-- <= 0) throw new Error("no more");
					return ["json", Buffer.from(JSON.stringify(value))];
				}

				async loadsTyped(_: string, data: Uint8Array | string): Promise<unknown> {
					return JSON.parse(Buffer.from(data).toString());
				}
			}
			const serde = new FragileSerializer();
			const saver = new SqliteSaver(path, { serde });
			const id = await thread(saver).put({ values: { a: LONG, b: LONG } });
			for (let left = 0; left < 3; left++) {
				serde.left = left;
				const values = { a: `${left}${LONG}`, b: `${left}${LONG}`, c: left };
				await expect(thread(saver).put({ parent: id, values })).rejects.toMatchObject({ code: "UNSERIALIZABLE" });
				serde.left = Math.min(left, 1);
				const writes: [string, unknown][] = [
					["a", LONG],
					["b", left],
				];
				await expect(thread(saver).write(id, writes)).rejects.toMatchObject({ code: "UNSERIALIZABLE" });
				serde.left = Number.POSITIVE_INFINITY;
				expect(await saver.verify()).toMatchObject({ checkpoints: 1, writes: 0, unreachable: 0, damage: [] });
			}
			await expectToWork(saver, 1);
			await saver.close();
		});
});

function has(program: string): boolean {
	return ["/usr/bin", "/bin", "/usr/local/bin"].some((place) => existsSync(join(place, program)));
}

/** Whether a file system can be mounted here, which few may. */
function canMount(): boolean {
	if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
	const place = makeTemporaryFolder();
	try {
		execFileSync("mount", ["-t", "tmpfs", "-o", "size=100k", "none", place], { stdio: "ignore" });
		execFileSync("umount", [place]);
		return true;
	} catch {
		return false;
	} finally {
		removeFolder(place);
	}
}

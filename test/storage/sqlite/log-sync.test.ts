import {
	closeSync,
	existsSync,
	fstatSync,
	mkdirSync,
	readdirSync,
	readlinkSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { SqliteSaver } from "../../../src/sqlite.ts";
import { LogSync } from "../../../src/storage/sqlite/log-sync.ts";
import { folder, path, thread } from "../../support/scratch-file.ts";

const BETWEEN = 300;

/** A disk that is done when it is told so. */
class SlowDisk {
	readonly fds: number[] = [];
	readonly #waiting: (() => void)[] = [];

	readonly sync = (fd: number, done: () => void) => {
		this.fds.push(fd);
		this.#waiting.push(done);
	};

	finish(): void {
		for (const done of this.#waiting.splice(0)) done();
	}
}

function makeFiles(): void {
	for (const name of [path, `${path}-wal`]) writeFileSync(name, "");
}

function commit(log: LogSync, count: number): void {
	for (let i = 0; i < count; i++) log.noteCommit();
}

describe("the log of a database", () => {
	it("is brought to the disk once in a while", () => {
		makeFiles();
		const disk = new SlowDisk();
		const log = new LogSync(path, disk.sync);
		commit(log, BETWEEN - 1);
		expect(disk.fds).toEqual([]);
		commit(log, 1);
		expect(disk.fds).toHaveLength(1);
		// Nobody can tell whether the first is done as long as the event loop stands still.
		commit(log, BETWEEN * 2);
		expect(disk.fds).toHaveLength(3);
		disk.finish();
		log.close();
	});

	it("is left alone while the disk is slow", async () => {
		makeFiles();
		const disk = new SlowDisk();
		const log = new LogSync(path, disk.sync);
		commit(log, BETWEEN);
		await nextTurn();
		commit(log, BETWEEN * 3);
		expect(disk.fds).toHaveLength(1);
		disk.finish();
		commit(log, 1);
		expect(disk.fds).toHaveLength(2);
		disk.finish();
		log.close();
	});

	it("stays open until the disk is done with it", () => {
		makeFiles();
		const disk = new SlowDisk();
		const log = new LogSync(path, disk.sync);
		commit(log, BETWEEN);
		const fd = disk.fds[0] as number;
		log.close();
		expect(fstatSync(fd).isFile()).toBe(true);
		disk.finish();
		expect(() => closeSync(fd)).toThrow("EBADF");
	});

	it("need not be there", () => {
		const disk = new SlowDisk();
		const log = new LogSync(path, disk.sync);
		commit(log, BETWEEN);
		expect(disk.fds).toEqual([]);
		log.close();
	});

	it("is found beside the file that a link leads to", async () => {
		mkdirSync(join(folder, "elsewhere"));
		const link = join(folder, "link.db");
		symlinkSync(join(folder, "elsewhere", "real.db"), link);
		const saver = new SqliteSaver(link);
		await thread(saver).put({ values: { note: "first" } });
		expect(existsSync(join(folder, "elsewhere", "real.db-wal"))).toBe(true);
		const disk = new SlowDisk();
		const log = new LogSync(link, disk.sync);
		commit(log, BETWEEN);
		expect(disk.fds).toHaveLength(1);
		disk.finish();
		log.close();
		await saver.close();
	});

	it.runIf(process.platform === "linux")("is opened by a saver that stores much, and closed with it", async () => {
		const saver = new SqliteSaver(path);
		const chat = thread(saver);
		const before = openLogs();
		for (let i = 0; i < BETWEEN + 10; i++) await chat.put({ values: { count: i } });
		expect(openLogs()).toBeGreaterThan(before);
		await saver.close();
		while (openLogs() > 0) await nextTurn();
		const again = new SqliteSaver(path);
		expect((await again.getTuple(chat.config()))?.checkpoint.channel_values.count).toBe(BETWEEN + 9);
		await again.close();
	});
});

/** How often this process has the log open. SQLite does it once. */
function openLogs(): number {
	return readdirSync("/proc/self/fd").filter((fd) => {
		try {
			return readlinkSync(`/proc/self/fd/${fd}`) === `${path}-wal`;
		} catch {
			return false;
		}
	}).length;
}

import Database from "better-sqlite3";
import { pack, unpack } from "msgpackr";
import { time, timeReads } from "./measure.ts";
import { databasePath, diskBytes } from "./savers.ts";
import type { Measures, Stage } from "./workload.ts";

/**
 * What a history costs that nobody can do without: each step's new content is packed and stored by one commit, and the
 * state is read by one pass over its bytes.
 */
export async function measureLimit(stage: Stage, news: readonly unknown[], state: unknown): Promise<Measures> {
	const store = stage.backend === "sqlite" ? storeOnDisk : storeInMemory;
	const { elapsed, bytes } = await store(stage, news);
	const packed = pack(state);
	return { put: elapsed / news.length, get: await timeReads(async () => unpack(packed)), bytes };
}

async function storeOnDisk(stage: Stage, news: readonly unknown[]): Promise<{ elapsed: number; bytes: number }> {
	const db = new Database(databasePath(stage));
	db.pragma("journal_mode = WAL");
	db.pragma("synchronous = NORMAL");
	db.exec("CREATE TABLE log (id INTEGER PRIMARY KEY, data BLOB NOT NULL)");
	const insert = db.prepare("INSERT INTO log (data) VALUES (?)");
	const elapsed = await time(async () => {
		for (const item of news) insert.run(pack(item));
	});
	db.close();
	return { elapsed, bytes: diskBytes(stage) };
}

async function storeInMemory(_: Stage, news: readonly unknown[]): Promise<{ elapsed: number; bytes: number }> {
	const log: Uint8Array[] = [];
	const elapsed = await time(async () => {
		// A copy of just the bytes: what msgpackr answers is a part of a larger buffer.
		for (const item of news) log.push(Uint8Array.from(pack(item)));
	});
	return { elapsed, bytes: log.reduce((sum, { length }) => sum + length, 0) };
}

import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { MemorySaver as OfficialMemorySaver } from "@langchain/langgraph-checkpoint";
import { SqliteSaver as OfficialSqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import Database from "better-sqlite3";
import { MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { heldBytes } from "./measure.ts";
import { openPostgres, takePostgresBytes } from "./postgres.ts";
import type { Measures, Saver, Stage } from "./workload.ts";

export interface OpenSaver {
	readonly saver: Saver;
	close(): Promise<void>;
}

export function databasePath({ folder }: Stage): string {
	return join(folder, "checkpoints.db");
}

/** The saver that the stage names, as an application would make it. */
export function openSaver(stage: Stage): OpenSaver {
	if (stage.side === "ours") {
		const saver = stage.backend === "memory" ? new MemorySaver() : new SqliteSaver(databasePath(stage));
		return { saver, close: () => saver.close() };
	}
	if (stage.backend === "memory") return { saver: new OfficialMemorySaver(), close: async () => {} };
	const saver = OfficialSqliteSaver.fromConnString(databasePath(stage));
	return { saver, close: async () => void saver.db.close() };
}

/** Bytes of the database, with what SQLite keeps beside it. */
export function diskBytes({ folder }: Stage): number {
	return readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
}

/** What is stored while the saver is open, on disk or in memory; in memory, with all else that is there. */
export async function storedBytes(stage: Stage): Promise<number> {
	if (stage.backend === "memory") return heldBytes();
	if (!existsSync(databasePath(stage))) return 0;
	const db = new Database(databasePath(stage));
	// Empties SQLite's log into the file.
	db.pragma("wal_checkpoint(TRUNCATE)");
	const bytes = diskBytes(stage);
	db.close();
	return bytes;
}

/**
 * What the last warm-up worked with stays, and with it the shapes of objects that compiled code is for: a look at memory
 * collects all garbage, and a server always has some of its objects.
 */
const warmedUp: unknown[] = [];

/**
 * Fills a fresh saver and reads from it. To what the two measured comes `bytes`: what the content takes on disk once
 * the saver is closed, or in memory while it is open.
 *
 * @param alike how many savers are filled in memory. The first is measured, before anybody looks at memory: with all garbage
 * goes compiled code, and what follows is slower. What the others take together tells more than one of them would: what V8
 * takes for the same objects differs by a few hundred kilobytes
 */
export async function measureOn(
	stage: Stage,
	fill: (saver: Saver) => Promise<Measures>,
	read: (saver: Saver) => Promise<Measures>,
	alike = 1,
): Promise<Measures> {
	const measuresBytes = stage.backend === "memory" && !stage.isWarmUp;
	const isLookedAtApart = measuresBytes && alike > 1;
	const look = measuresBytes ? heldBytes : async () => 0;
	const before = isLookedAtApart ? 0 : await look();
	const { saver, close } = stage.backend === "postgres" ? await openPostgres(stage) : openSaver(stage);
	const filled = await fill(saver);
	if (stage.isWarmUp) warmedUp[0] = [saver, fill, read];
	const held = isLookedAtApart ? 0 : (await look()) - before;
	const found = await read(saver);
	await close();
	if (stage.backend === "postgres") return { ...filled, ...found, bytes: await takePostgresBytes(stage) };
	if (isLookedAtApart) return { ...filled, ...found, bytes: await fillAndWeigh(stage, fill, alike - 1) };
	return { ...filled, ...found, bytes: stage.backend === "memory" ? held : diskBytes(stage) };
}

/** What each of some savers holds once it is filled. */
async function fillAndWeigh(stage: Stage, fill: (saver: Saver) => Promise<Measures>, count: number): Promise<number> {
	const before = await heldBytes();
	const savers = Array.from({ length: count }, () => openSaver(stage));
	for (const { saver } of savers) await fill(saver);
	const held = (await heldBytes()) - before;
	for (const { close } of savers) await close();
	return held / count;
}

import { CheckpointError, isCorrupt, type Place } from "../../errors.ts";
import type { CheckpointKey, FoundCheckpoint, ThreadOutline, WriteKey, WriteRow } from "../../storage/storage.ts";
import { isInternal } from "../delta-channels/origin.ts";
import { cellsOf, unpackHistory } from "../delta-channels/raw-history.ts";
import { walk } from "../delta-channels/walk.ts";
import { type Engine, MOST_ATTEMPTS } from "../engine.ts";
import type { Cell } from "../head.ts";
import type { Pause } from "../pause.ts";
import { cacheKey, unpackRow, writeCell } from "../rows.ts";
import type { Damage } from "./types.ts";

const ROWS_AT_ONCE = 256;
/** Reading so many takes some milliseconds. */
const CHECKPOINTS_IN_A_TURN = 16;

/** A checkpoint of which something can't be read. */
interface BrokenCheckpoint extends CheckpointKey {
	/** It lacks just a value, so that what came after it can still be told. */
	readonly isReadable: boolean;
}

/**
 * Reads everything of a thread, and goes on where something can't be read. What others remove meanwhile is no fault: what
 * looks like one is looked at again.
 */
export async function surveyThread(engine: Engine, threadId: string, pause: Pause): Promise<Survey> {
	for (let attempt = 1, sure = 0; ; attempt++) {
		const survey = new Survey(engine, threadId);
		await survey.run(pause);
		if (survey.faults.length === 0 || attempt === MOST_ATTEMPTS) return survey;
		const thread = await engine.storage.getThread(threadId).catch(() => undefined);
		sure = thread?.stamp === survey.stamp ? sure + 1 : 0;
		if (sure === 2) return survey;
		engine.clearCaches();
	}
}

/** What is found of a thread. */
export class Survey {
	readonly #engine: Engine;
	readonly #threadId: string;
	/** Of the thread, before anything was read. */
	stamp: number | undefined;
	written: ThreadOutline["written"] = [];
	/** Rows that can be read, whatever else can't. */
	readonly rows: FoundCheckpoint[] = [];
	readonly broken = new Map<string, BrokenCheckpoint>();
	/** Writes that can't be read themselves. */
	readonly brokenWrites = new Map<string, WriteKey>();
	/** How many there are. */
	writes = 0;
	/** What can't be read. */
	readonly faults: Damage[] = [];
	/** If not, the bytes are sound, but the serializer does not understand some: it may be another than they are by. */
	isDamaged = false;

	constructor(engine: Engine, threadId: string) {
		this.#engine = engine;
		this.#threadId = threadId;
	}

	async run(pause: Pause): Promise<void> {
		const { storage } = this.#engine;
		const threadId = this.#threadId;
		await this.#attempt({ threadId }, async () => {
			this.stamp = (await storage.getThread(threadId))?.stamp;
			const { checkpoints, written } = await storage.readOutline(threadId);
			this.written = written;
			for (let i = 0; i < checkpoints.length; i += ROWS_AT_ONCE)
				this.rows.push(...(await this.#readRows(checkpoints.slice(i, i + ROWS_AT_ONCE))));
		});
		for (const [n, row] of this.rows.entries()) {
			if (n % CHECKPOINTS_IN_A_TURN === 0) await pause();
			await this.#readCheckpoint(row);
		}
		await this.#attempt({ threadId }, async () => {
			const { writes } = await storage.readThread(threadId);
			this.writes = writes.length;
			const known = new Set(this.rows.map(cacheKey));
			// Those of checkpoints were read with them.
			for (const write of writes) if (!known.has(cacheKey(write))) await this.#readWrite(write);
		});
	}

	/** If they can't be read together, they are read one by one. */
	async #readRows(keys: readonly CheckpointKey[]): Promise<readonly FoundCheckpoint[]> {
		const { storage } = this.#engine;
		try {
			return (await storage.read(keys, "rows")).checkpoints;
		} catch {
			const rows: FoundCheckpoint[] = [];
			for (const key of keys) {
				const found = await this.#attempt(placeOf(key), () => storage.read([key], "rows"));
				if (found === undefined) this.#break(key, false);
				else rows.push(...found.checkpoints);
			}
			return rows;
		}
	}

	async #readCheckpoint(row: FoundCheckpoint): Promise<void> {
		const place = placeOf(row);
		const hasSoundValues = await this.#attempt(place, () => this.#readValues(row));
		const hasSoundBases = await this.#readWritesAndBases(row).catch((error: unknown) => {
			this.#note(error, place);
			// A write that can't be opened does not harm its checkpoint, nor does another checkpoint that was read along.
			const { checkpointId, taskId } = (error as CheckpointError).place ?? {};
			return checkpointId !== row.id || taskId !== undefined;
		});
		if (!hasSoundValues || !hasSoundBases) this.#break(row, hasSoundValues !== undefined);
	}

	#break(key: CheckpointKey, isReadable: boolean): void {
		const { threadId, ns, id } = key;
		this.broken.set(cacheKey(key), { threadId, ns, id, isReadable });
	}

	/** Answers whether the values are sound; throws if what they are can't be told. */
	async #readValues(row: FoundCheckpoint): Promise<boolean> {
		const { versions, metadata, manifest, origin } = unpackRow(row);
		const isSound = await this.#readCells(row, [["metadata", metadata], ...manifest]);
		const deltas = Object.keys(versions).filter((name) => !manifest.has(name) && !isInternal(name));
		if (origin !== undefined && deltas.length > 0) await walk(this.#engine, row, deltas);
		return isSound;
	}

	/** Answers whether the delta bases are sound. */
	async #readWritesAndBases(row: FoundCheckpoint): Promise<boolean> {
		const { writes, deltaBases } = await this.#engine.storage.readPath(row, 1);
		const based = deltaBases.flatMap((base) =>
			cellsOf(unpackHistory(base.data)).map((cell) => [base.channel, cell] as const),
		);
		const isSound = await this.#readCells(row, based);
		for (const write of writes) await this.#readWrite(write);
		return isSound;
	}

	async #readWrite(write: WriteRow): Promise<void> {
		await this.#readCells(write, [[write.channel, writeCell(write)]], write);
	}

	/** Answers whether the bytes are sound. */
	async #readCells(
		key: CheckpointKey,
		cells: readonly (readonly [channel: string, cell: Cell])[],
		write?: WriteKey,
	): Promise<boolean> {
		let isSound = true;
		const { taskId, idx, generation } = write ?? {};
		for (const [channel, cell] of cells) {
			const place = { ...placeOf(key), channel, taskId, idx, generation };
			const blobs = await this.#attempt(place, async () => {
				const found = await this.#engine.blobs.load(typeof cell === "number" ? [cell] : []);
				if (typeof cell === "number" && !found.has(cell))
					throw new CheckpointError("CORRUPT", `Blob ${cell} is missing.`, { place });
				return found;
			});
			isSound &&= blobs !== undefined;
			if (blobs) await this.#attempt(place, () => this.#engine.decodeAll(key, [[channel, cell]], blobs), true);
		}
		return isSound;
	}

	/** Answers nothing if it fails, and takes down why. */
	async #attempt<T>(place: Place, read: () => T | Promise<T>, isUndecodable = false): Promise<T | undefined> {
		try {
			return await read();
		} catch (error) {
			this.#note(error, place, isUndecodable);
			return undefined;
		}
	}

	#note(error: unknown, place: Place, isUndecodable = false): void {
		// Without the key nothing can be said of a row.
		if (!isCorrupt(error)) throw error;
		const { threadId, ns, checkpointId, channel, taskId, idx, generation } = { ...place, ...error.place };
		this.isDamaged ||= !isUndecodable;
		const isOfWrite = ns !== undefined && checkpointId !== undefined && taskId !== undefined;
		if (!isUndecodable && isOfWrite && idx !== undefined && generation !== undefined) {
			const key = { threadId: this.#threadId, ns, id: checkpointId, taskId, idx, generation };
			this.brokenWrites.set(JSON.stringify(key), key);
		}
		// A row may be met on several ways.
		if (this.faults.some(({ problem }) => problem === error.message)) return;
		this.faults.push({ threadId, ns, checkpointId, channel, taskId, problem: error.message });
	}
}

function placeOf({ threadId, ns, id }: CheckpointKey): Place {
	return { threadId, ns, checkpointId: id };
}

import { CheckpointError, type Place } from "../../errors.ts";
import type { CheckpointKey, DeltaBaseRow, FoundCheckpoint, WriteKey, WriteRow } from "../../storage/storage.ts";
import { isInternal } from "../delta-channels/origin.ts";
import { walk } from "../delta-channels/walk.ts";
import { type Engine, MOST_ATTEMPTS } from "../engine.ts";
import type { Cell } from "../head.ts";
import type { Pause } from "../pause.ts";
import { cacheKey, unpackRow, writeCell } from "../rows.ts";
import { cellsOf } from "./collect.ts";

const ROWS_AT_ONCE = 256;
/** Reading so many takes some milliseconds. */
const CHECKPOINTS_IN_A_TURN = 16;

/** Something that can't be read. */
export interface Fault extends Place {
	readonly problem: string;
	/** The bytes are sound, but the serializer does not understand them: it may be another than the one they are by. */
	readonly isUndecodable: boolean;
}

/** What was found of a thread. */
export interface Survey {
	/** Rows that can be read, whatever else can't. */
	readonly rows: FoundCheckpoint[];
	/** Checkpoints of which something can't be read: their rows, values or histories. */
	readonly broken: Map<string, CheckpointKey>;
	/** Those of them that lack just a value, so that what came after them can still be told. */
	readonly valueless: Set<string>;
	/** Writes that can't be read themselves. */
	readonly brokenWrites: WriteKey[];
	readonly writes: number;
	readonly faults: Fault[];
	/** Of the thread, before anything was read. */
	readonly stamp: number | undefined;
	/** The thread as a whole can't be told. */
	readonly isUnknown: boolean;
}

/**
 * Reads everything of a thread, and goes on where something can't be read. What others remove meanwhile is no fault: what
 * looks like one is looked at again.
 */
export async function surveyThread(engine: Engine, threadId: string, pause: Pause): Promise<Survey> {
	for (let attempt = 1, sure = 0; ; attempt++) {
		const survey = await new Surveyor(engine, threadId, pause).run();
		if (survey.faults.length === 0 || attempt === MOST_ATTEMPTS) return survey;
		const thread = await engine.storage.getThread(threadId).catch(() => undefined);
		sure = thread?.stamp === survey.stamp ? sure + 1 : 0;
		if (sure === 2) return survey;
		engine.clearCaches();
	}
}

class Surveyor {
	readonly #engine: Engine;
	readonly #threadId: string;
	readonly #pause: Pause;
	readonly #rows: FoundCheckpoint[] = [];
	readonly #broken = new Map<string, CheckpointKey>();
	readonly #valueless = new Set<string>();
	readonly #brokenWrites = new Map<string, WriteKey>();
	readonly #faults: Fault[] = [];
	#writes = 0;
	#stamp: number | undefined;
	#isUnknown = false;

	constructor(engine: Engine, threadId: string, pause: Pause) {
		this.#engine = engine;
		this.#pause = pause;
		this.#threadId = threadId;
	}

	async run(): Promise<Survey> {
		await this.#attempt({ threadId: this.#threadId }, async () => {
			this.#stamp = (await this.#engine.storage.getThread(this.#threadId))?.stamp;
		});
		await this.#findRows();
		for (const [n, row] of this.#rows.entries()) {
			if (n % CHECKPOINTS_IN_A_TURN === 0) await this.#pause();
			await this.#readCheckpoint(row);
		}
		await this.#attempt({ threadId: this.#threadId }, async () => {
			const { writes } = await this.#engine.storage.readThread(this.#threadId);
			this.#writes = writes.length;
			const known = new Set(this.#rows.map(cacheKey));
			// Those of checkpoints were read with them.
			for (const write of writes) if (!known.has(cacheKey(write))) await this.#readWrite(write);
		});
		return {
			rows: this.#rows,
			broken: this.#broken,
			valueless: this.#valueless,
			brokenWrites: [...this.#brokenWrites.values()],
			writes: this.#writes,
			faults: this.#faults,
			stamp: this.#stamp,
			isUnknown: this.#isUnknown,
		};
	}

	/** A scan that meets a row that can't be opened says which, and is taken up again behind it. */
	async #findRows(): Promise<void> {
		const { storage } = this.#engine;
		const threadId = this.#threadId;
		let after: CheckpointKey | undefined;
		for (let limit = ROWS_AT_ONCE; ; ) {
			try {
				const page = (await storage.read({ threadId, after, limit }, "rows")).checkpoints;
				this.#rows.push(...page);
				if (page.length < limit) return;
				after = page.at(-1);
				limit = ROWS_AT_ONCE;
			} catch (error) {
				const { ns, checkpointId: id } = placeOf(error);
				// One by one, to get up to the row.
				if (limit > 1) {
					limit = 1;
					continue;
				}
				this.#note(error, { threadId });
				this.#isUnknown ||= ns === undefined || id === undefined;
				if (ns === undefined || id === undefined) return;
				after = { threadId, ns, id };
				this.#broken.set(cacheKey(after), after);
			}
		}
	}

	async #readCheckpoint(row: FoundCheckpoint): Promise<void> {
		const { threadId, ns, id } = row;
		const place = { threadId, ns, checkpointId: id };
		const isWhole = await this.#attempt(place, async () => {
			const head = unpackRow(row);
			let isSound = true;
			for (const [channel, cell] of [["metadata", head.metadata] as const, ...head.manifest])
				isSound = (await this.#readCell(row, channel, cell)) && isSound;
			const deltas = Object.keys(head.versions).filter((name) => !head.manifest.has(name) && !isInternal(name));
			if (head.origin !== undefined && deltas.length > 0) await walk(this.#engine, row, deltas);
			return isSound;
		});
		const hasSoundBases = await this.#readWritesAndBases(row).catch((error: unknown) => {
			this.#note(error, place);
			// A write that can't be opened does not harm its checkpoint, nor does another checkpoint that was read along.
			const { checkpointId, taskId } = placeOf(error);
			return checkpointId !== id || taskId !== undefined;
		});
		if (isWhole !== true || !hasSoundBases) this.#broken.set(cacheKey(row), { threadId, ns, id });
		if (isWhole === false || (isWhole && !hasSoundBases)) this.#valueless.add(cacheKey(row));
	}

	/** Answers whether the delta bases are sound. */
	async #readWritesAndBases(row: FoundCheckpoint): Promise<boolean> {
		const { writes, deltaBases } = await this.#engine.storage.readPath(row, 1);
		let isSound = true;
		for (const base of deltaBases) isSound = (await this.#readBase(base)) && isSound;
		for (const write of writes) await this.#readWrite(write);
		return isSound;
	}

	async #readBase(base: DeltaBaseRow): Promise<boolean> {
		let isSound = true;
		for (const cell of cellsOf(base)) isSound = (await this.#readCell(base, base.channel, cell)) && isSound;
		return isSound;
	}

	async #readWrite(write: WriteRow): Promise<void> {
		await this.#readCell(write, write.channel, writeCell(write), write);
	}

	/** Answers whether the bytes are sound. */
	async #readCell(key: CheckpointKey, channel: string, cell: Cell, write?: WriteKey): Promise<boolean> {
		const { threadId, ns, id } = key;
		const { taskId, idx, generation } = write ?? {};
		const place = { threadId, ns, checkpointId: id, channel, taskId, idx, generation };
		const blobs = await this.#attempt(place, async () => {
			const found = await this.#engine.blobs.load(typeof cell === "number" ? [cell] : []);
			if (typeof cell === "number" && !found.has(cell))
				throw new CheckpointError("CORRUPT", `Blob ${cell} is missing.`, { place });
			return found;
		});
		if (blobs === undefined) return false;
		await this.#attempt(place, () => this.#engine.decodeAll(key, [[channel, cell]], blobs), true);
		return true;
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
		if (!(error instanceof CheckpointError) || error.code !== "CORRUPT") throw error;
		const found = { ...place, ...error.place };
		if (!isUndecodable) this.#noteWrite(found);
		// A row may be met on several ways.
		if (this.#faults.some(({ problem }) => problem === error.message)) return;
		this.#faults.push({ ...found, problem: error.message, isUndecodable });
	}

	/** A write that could not even be taken out of the storage. */
	#noteWrite({ ns, checkpointId: id, taskId, idx, generation }: Place): void {
		if (ns === undefined || id === undefined || taskId === undefined) return;
		if (idx !== undefined && generation !== undefined)
			this.#brokenWrites.set(JSON.stringify([ns, id, taskId, idx, generation]), {
				...{ threadId: this.#threadId, ns, id },
				...{ taskId, idx, generation },
			});
	}
}

function placeOf(error: unknown): Place {
	return (error instanceof CheckpointError && error.place) || {};
}

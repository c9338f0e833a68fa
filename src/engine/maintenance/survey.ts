import { isCorrupt, type Place } from "../../errors.ts";
import type { CheckpointKey, FoundCheckpoint, ThreadOutline, WriteKey } from "../../storage/storage.ts";
import type { Cell } from "../cells.ts";
import { isInternal } from "../delta-channels/origin.ts";
import { cellsOf, unpackHistory } from "../delta-channels/raw-history.ts";
import { walk } from "../delta-channels/walk.ts";
import { type Engine, MOST_ATTEMPTS } from "../engine.ts";
import type { Pause } from "../pause.ts";
import { cacheKey, unpackRow, writeCell } from "../rows.ts";
import type { Damage } from "./types.ts";

/** Reading so many takes some milliseconds. */
const CHECKPOINTS_IN_A_TURN = 16;

/**
 * What a fault takes away: a row, which can't be opened; a value, without which the row can still tell what came after it;
 * or nothing. Then the bytes are sound, but the serializer does not understand them: it may be another than they are by.
 */
type Loss = "row" | "value" | "nothing";

/**
 * Reads everything of a thread, and goes on where something can't be read. What others remove meanwhile is no fault: what
 * looks like one is looked at again.
 */
export async function surveyThread(engine: Engine, threadId: string, pause: Pause): Promise<Survey> {
	for (let attempt = 1, sure = 0; ; attempt++) {
		const survey = new Survey(engine, threadId);
		await survey.run(pause);
		if (survey.faults.size === 0 || attempt === MOST_ATTEMPTS) return survey;
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
	/** Rows that can be opened, whatever else can't. */
	readonly rows: FoundCheckpoint[] = [];
	/** How many there are. */
	writes = 0;
	/** What can't be read, each once, on however many ways it was met. */
	readonly faults = new Map<string, Damage>();
	/** Whether anything is lost. */
	isDamaged = false;
	/** Of which checkpoints and writes, by their keys. */
	readonly lost = new Map<string, CheckpointKey & { readonly loss: Loss }>();
	readonly lostWrites = new Map<string, WriteKey & { readonly loss: Loss }>();

	constructor(engine: Engine, threadId: string) {
		this.#engine = engine;
		this.#threadId = threadId;
	}

	async run(pause: Pause): Promise<void> {
		const { storage } = this.#engine;
		await this.#attempt(async () => {
			this.stamp = (await storage.getThread(this.#threadId))?.stamp;
			const { checkpoints, written } = await storage.readOutline(this.#threadId);
			this.written = written;
			for (const [n, key] of checkpoints.entries()) {
				if (n % CHECKPOINTS_IN_A_TURN === 0) await pause();
				await this.#readCheckpoint(key);
			}
			const { writes } = await storage.readThread(this.#threadId);
			this.writes = writes.length;
			const known = new Set(checkpoints.map(cacheKey));
			// Those of checkpoints were read with them.
			const others = writes.filter((write) => !known.has(cacheKey(write)));
			for (const write of others) await this.#readCells(write, write.channel, [writeCell(write)]);
		});
	}

	async #readCheckpoint(key: CheckpointKey): Promise<void> {
		const { storage } = this.#engine;
		// May fail for the sake of a write or of another row: the error says which.
		const reading = await this.#attempt(() => storage.readPath(key, 1));
		const alone = reading ? undefined : await this.#attempt(() => storage.read([key], "rows"), key);
		const [row] = reading?.path ?? alone?.checkpoints ?? [];
		if (row === undefined) return;
		this.rows.push(row);
		await this.#attempt(() => this.#readValues(row), row);
		for (const base of reading?.deltaBases ?? [])
			await this.#attempt(() => this.#readCells(row, base.channel, cellsOf(unpackHistory(base.data))), row);
		for (const write of reading?.writes ?? []) await this.#readCells(write, write.channel, [writeCell(write)]);
	}

	async #readValues(row: FoundCheckpoint): Promise<void> {
		const { versions, metadata, manifest, origin } = unpackRow(row);
		await this.#readCells(row, "metadata", [metadata]);
		for (const [channel, cell] of manifest) await this.#readCells(row, channel, [cell]);
		const deltas = Object.keys(versions).filter((name) => !manifest.has(name) && !isInternal(name));
		if (origin === undefined || deltas.length === 0) return;
		const histories = await this.#attempt(() => walk(this.#engine, row, deltas));
		if (histories === undefined) this.#lose(row, "value");
	}

	async #readCells(key: CheckpointKey & Partial<WriteKey>, channel: string, cells: readonly Cell[]): Promise<void> {
		const { blobs } = this.#engine;
		for (const cell of cells) {
			const ids = typeof cell === "number" ? [cell] : [];
			const found = await this.#attempt(() => blobs.load(ids), { ...key, channel }, "value");
			const loss = found?.size === ids.length ? "nothing" : "value";
			if (found)
				await this.#attempt(() => this.#engine.decodeAll(key, [[channel, cell]], found), { ...key, channel }, loss);
		}
	}

	/**
	 * Returns nothing if it fails, and takes down why.
	 *
	 * @param of what is read, unless the error says it
	 */
	async #attempt<T>(
		read: () => T | Promise<T>,
		of: Partial<WriteKey> & { channel?: string } = {},
		loss: Loss = "row",
	): Promise<T | undefined> {
		try {
			return await read();
		} catch (error) {
			// Without the key nothing can be said of a row.
			if (!isCorrupt(error)) throw error;
			this.#note(error.message, { ...of, checkpointId: of.id, ...error.place }, loss);
			return undefined;
		}
	}

	#note(problem: string, { ns, checkpointId, channel, taskId, idx, generation }: Place, loss: Loss): void {
		const threadId = this.#threadId;
		const fault = { threadId, ns, checkpointId, channel, taskId, problem };
		this.faults.set(JSON.stringify(fault), fault);
		if (loss === "nothing") return;
		this.isDamaged = true;
		if (ns === undefined || checkpointId === undefined) return;
		const key = { threadId, ns, id: checkpointId, taskId, idx, generation };
		if (isWriteKey(key)) this.lostWrites.set(JSON.stringify(key), { ...key, loss });
		else this.#lose(key, loss);
	}

	#lose({ threadId, ns, id }: CheckpointKey, loss: Loss): void {
		const key = cacheKey({ threadId, ns, id });
		if (this.lost.get(key)?.loss !== "row") this.lost.set(key, { threadId, ns, id, loss });
	}
}

function isWriteKey(key: CheckpointKey & Partial<WriteKey>): key is WriteKey {
	return key.taskId !== undefined && key.idx !== undefined && key.generation !== undefined;
}

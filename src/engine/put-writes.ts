import { WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import type { Encoded } from "../codec/codec.ts";
import type { CheckpointKey, NewWrite } from "../storage/storage.ts";
import type { MadeBlob } from "./blobs/blobs.ts";
import type { Engine } from "./engine.ts";
import { cacheKey } from "./rows.ts";

/** Writes up to this size stand in the write row. Larger ones would spill out of the database's index pages. */
const INLINE_WRITE_BYTES = 512;
/** Larger writes to a channel whose value is in a blob become one as well: the next value is built from both. */
const SHARED_WRITE_BYTES = 96;
/** A write this many times smaller than its channel's value is not another value of it, but something to add. */
const FRACTION = 4;

const NO_BYTES = new Uint8Array(0);

export interface PutWritesInput {
	readonly key: CheckpointKey;
	readonly runId: string | undefined;
	readonly actor: number;
	readonly taskId: string;
	readonly taskPath: string | undefined;
	readonly writes: readonly (readonly [channel: string, value: unknown])[];
}

/** What becomes of a task's writes. */
interface Placement {
	readonly rows: NewWrite[];
	readonly blobs: (MadeBlob & { readonly channel: string })[];
	/** Stamp of the thread when the older blobs that it builds on were seen; `undefined` if there are none. */
	stamp: number | undefined;
}

/** Stores what a task wrote, all of it or nothing. */
export async function putWrites(engine: Engine, input: PutWritesInput): Promise<void> {
	const encoding = engine.encodeAll(input.writes);
	// What a task stores in several calls, none of which waits for the other, counts in the order of these calls.
	await engine.taskTurns.take(`${cacheKey(input.key)} ${input.taskId}`, async () => {
		const values = await encoding;
		if (!(await store(engine, input, values, true))) await store(engine, input, values, false);
	});
}

/**
 * Returns whether it was stored: not if what it builds on may be gone.
 *
 * @param mayBuild whether values may be patches on blobs of the checkpoint
 */
async function store(
	engine: Engine,
	input: PutWritesInput,
	values: readonly Encoded[],
	mayBuild: boolean,
): Promise<boolean> {
	const { key } = input;
	const { rows, blobs, stamp } = await place(engine, input, values, mayBuild);
	const stored = await engine.storage.put({
		threadId: key.threadId,
		stamp,
		fresh: await engine.blobs.nextId(),
		now: Date.now(),
		checkpoint: undefined,
		labels: undefined,
		onlyOnHead: undefined,
		blobs: blobs.map(({ row }) => row),
		writes: rows,
		deltaBases: [],
	});
	engine.changeParts(key);
	if (stored !== undefined) engine.rememberWritten(key, blobs, stored.stamp);
	return stored !== undefined;
}

async function place(
	engine: Engine,
	{ key, runId, actor, taskId, taskPath, writes }: PutWritesInput,
	values: readonly Encoded[],
	mayBuild: boolean,
): Promise<Placement> {
	const placed: Placement = { rows: [], blobs: [], stamp: undefined };
	const { threadId, ns, id } = key;
	const manifest = engine.peekView(key)?.head.manifest;
	const isAllSpecial = writes.every(([channel]) => specialIndex(channel) !== undefined);
	for (let i = 0; i < values.length; i++) {
		const channel = (writes[i] as PutWritesInput["writes"][number])[0];
		const encoded = values[i] as Encoded;
		const special = specialIndex(channel);
		const conflict: NewWrite["conflict"] = isAllSpecial ? "replace" : special === undefined ? "add" : "drop";
		const idx = special ?? i;
		// Two special writes of one kind have the same index: the last one counts where it replaces, else the first.
		const same = special === undefined ? -1 : placed.rows.findIndex((row) => row.idx === idx);
		if (conflict === "drop" && same >= 0) continue;
		// One that may be replaced stands in its row, so that nothing is left over when it is.
		const most = typeof manifest?.get(channel) === "number" ? SHARED_WRITE_BYTES : INLINE_WRITE_BYTES;
		const isLarge = encoded.bytes.length > most && special === undefined;
		const blob = isLarge ? await placeValue(engine, mayBuild ? key : undefined, channel, encoded, placed) : undefined;
		const value = blob === undefined ? encoded.bytes : NO_BYTES;
		const type = blob === undefined ? encoded.type : undefined;
		const row = { threadId, ns, id, taskId, idx, taskPath, channel, runId, actor, conflict, type, blob, value };
		if (same < 0) placed.rows.push(row);
		else placed.rows[same] = row;
	}
	return placed;
}

/** A write often is a new version of what its channel holds. */
async function placeValue(
	engine: Engine,
	key: CheckpointKey | undefined,
	channel: string,
	encoded: Encoded,
	placed: Placement,
): Promise<number> {
	const view = key && engine.peekView(key);
	const current = view?.head.manifest.get(channel);
	const known = typeof current === "number" ? engine.blobs.peek(current) : undefined;
	const isVersion = known !== undefined && encoded.bytes.length * FRACTION >= known.bytes.length;
	const made = await engine.blobs.make(encoded, isVersion ? (current as number) : undefined);
	if (made === undefined || made.row.base !== undefined) placed.stamp = view?.stamp;
	if (made === undefined) return current as number;
	placed.blobs.push({ row: made.row, blob: made.blob, channel });
	return made.row.id;
}

function specialIndex(channel: string): number | undefined {
	return Object.hasOwn(WRITES_IDX_MAP, channel) ? WRITES_IDX_MAP[channel] : undefined;
}

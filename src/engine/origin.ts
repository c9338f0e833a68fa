import type { CheckpointKey, CheckpointRow, FoundCheckpoint } from "../storage/storage.ts";
import { absorbedTasks, findCopied, type PathCheckpoint, type TaskState } from "./attribution.ts";
import { type Engine, type PutInput, unpackRow } from "./engine.ts";
import type { Head, Origin } from "./head.ts";

/** LangGraph's own channels, which are never rebuilt from writes. */
const INTERNAL = /^(__|branch:to:|join:)/;

/**
 * Channels that may live from writes instead of a stored value: those with a version and no value. A delta channel is
 * always one of them, except at its snapshots.
 */
export function rebuildableChannels(versions: Readonly<Record<string, unknown>>, values: object): string[] {
	return Object.keys(versions).filter((channel) => !Object.hasOwn(values, channel) && !INTERNAL.test(channel));
}

export function isInternal(channel: string): boolean {
	return INTERNAL.test(channel);
}

/** What is known only now of how a checkpoint came to be. `base` is its parent's head, or its own if it is put again. */
export async function findOrigin(
	engine: Engine,
	input: PutInput,
	row: Omit<CheckpointRow, "head">,
	head: Omit<Head, "origin">,
	base: Head | undefined,
): Promise<Origin> {
	const { actor } = input;
	if (input.parentId === row.id && base !== undefined) {
		const { origin } = base;
		if (origin !== undefined) return actor === undefined ? origin : { ...origin, again: [...origin.again, actor] };
	}
	if (row.source === "fork") return { actor: (await copiedActor(engine, input, row, head)) ?? actor, absorbed: false, again: [] };
	const absorbed = row.source === "update" && base !== undefined && absorbedTasks(taskState(base), taskState(head));
	return { actor, absorbed, again: [] };
}

/** A copy counts as made by whoever made its original. */
async function copiedActor(
	engine: Engine,
	{ copyOf }: PutInput,
	row: Omit<CheckpointRow, "head">,
	head: Omit<Head, "origin">,
): Promise<number | undefined> {
	const { threadId, ns, parentId } = row;
	const parent = parentId === undefined ? undefined : await engine.storage.getCheckpoint({ threadId, ns, id: parentId });
	// A time travel is put one step below its parent, a copy beside its original, which was put there.
	if (row.step === (parent?.step ?? -2) + 1) return undefined;
	const original = copyOf && (await engine.storage.getCheckpoint({ threadId, ns, id: copyOf }));
	if (original) return unpackRow(original).origin?.actor;
	const siblings = parentId === undefined ? await roots(engine, row) : await engine.storage.getChildren(threadId, ns, [parentId]);
	const copy = { id: row.id, parentId, source: row.source, step: row.step, versions: head.versions };
	return findCopied(copy, siblings.map((sibling) => pathCheckpoint(sibling)))?.actor;
}

async function roots(engine: Engine, { threadId, ns }: CheckpointKey): Promise<FoundCheckpoint[]> {
	const rows: FoundCheckpoint[] = [];
	for await (const row of engine.scanAll({ threadId, ns })) if (row.parentId === undefined) rows.push(row);
	return rows;
}

/** A row as the attribution of writes sees it. */
export function pathCheckpoint(row: FoundCheckpoint, head = unpackRow(row)): PathCheckpoint {
	const { id, parentId, source, step } = row;
	return { id, parentId, source, step, versions: head.versions, ...head.origin };
}

function taskState(head: Omit<Head, "origin">): TaskState {
	return {
		versions: head.versions,
		seen: head.seen,
		value: (channel) => {
			const cell = head.manifest.get(channel);
			return typeof cell === "object" ? String.fromCharCode(...cell.bytes) : cell;
		},
	};
}

import { isDeltaSnapshot } from "@langchain/langgraph-checkpoint";
import type { CheckpointKey, CheckpointRow, FoundCheckpoint } from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import type { Head, Origin } from "../head.ts";
import type { PutInput } from "../put.ts";
import { unpackRow } from "../rows.ts";
import { absorbedTasks, findOriginal, type PathCheckpoint, sameVersions, type TaskState } from "./attribution.ts";

/** What tells how a checkpoint came to be. */
type Made = Pick<Head, "versions" | "seen" | "manifest">;

/** Whether it is one of LangGraph's own channels, which are never rebuilt from writes. */
export function isInternal(channel: string): boolean {
	return channel.startsWith("__") || channel.startsWith("branch:to:") || channel.startsWith("join:");
}

/**
 * Whether the checkpoint has a channel that may be rebuilt from writes: one with a version and no value, which a delta
 * channel always is except at its snapshots, or such a snapshot.
 */
export function hasDeltaChannel(
	versions: Readonly<Record<string, unknown>>,
	values: Readonly<Record<string, unknown>>,
): boolean {
	for (const channel in versions) if (!Object.hasOwn(values, channel) && !isInternal(channel)) return true;
	for (const channel in values) if (isSnapshot(values[channel])) return true;
	return false;
}

function isSnapshot(value: unknown): boolean {
	try {
		return typeof value === "object" && isDeltaSnapshot(value);
	} catch {
		// A value that can't be looked at is refused when it is encoded.
		return false;
	}
}

/** What is known only now of how a checkpoint came to be. `base` is its parent's head, or its own if it is put again. */
export async function findOrigin(
	engine: Engine,
	input: PutInput,
	row: Omit<CheckpointRow, "head" | "blobs">,
	head: Made,
	base: Head | undefined,
): Promise<Origin> {
	const { actor } = input;
	const made = actor === undefined ? {} : { actor };
	if (input.parentId === row.id && base?.origin !== undefined)
		return actor === undefined ? base.origin : { ...base.origin, ...putAgain(base, base.origin, actor) };
	if (row.source === "fork") {
		const original = await findCopy(engine, input, row, head);
		// A copy counts as made by whoever made its original.
		return original ? { actor: original.actor ?? actor, copyOf: original.id } : made;
	}
	if (row.source !== "update" || base === undefined) return made;
	const absorbed = absorbedTasks(taskState(base), taskState(head));
	// An empty update has the history of its parent, also once a run that began with it has put it again.
	const isCopy = !absorbed && sameVersions(base.versions, head.versions);
	return isCopy ? { ...made, copyOf: row.parentId } : { ...made, absorbed };
}

/** What a run that resumed there saw and raised is in its head now; the run that made the checkpoint had something else. */
function putAgain({ seen, versions }: Head, { again = [] }: Origin, actor: number): Origin {
	const first = { resumedAt: seen.__interrupt__ ?? {}, firstVersions: versions };
	return { ...(again.length === 0 ? first : {}), again: [...again, actor] };
}

/** The checkpoint that a fork is a copy of, if it is one and not the first step of a time travel. */
async function findCopy(
	engine: Engine,
	{ copyOf }: PutInput,
	row: Omit<CheckpointRow, "head" | "blobs">,
	head: Made,
): Promise<PathCheckpoint | undefined> {
	const { threadId, ns, id, parentId, source, step } = row;
	const { path, siblings } =
		parentId === undefined
			? await readRoots(engine, row)
			: await engine.storage.readPath({ threadId, ns, id: parentId }, 1);
	const [parent] = path;
	const known = copyOf === undefined ? siblings : siblings.filter((sibling) => sibling.id === copyOf);
	return findOriginal({
		child: { id, parentId, source, step, versions: head.versions },
		parent: parent && pathCheckpoint(parent),
		siblings: known.map((sibling) => pathCheckpoint(sibling)),
	});
}

/** The checkpoints of a namespace that have no parent either. */
async function readRoots({ storage }: Engine, { threadId, ns }: CheckpointKey) {
	const { checkpoints } = await storage.readOutline(threadId);
	const roots = checkpoints.filter((row) => row.ns === ns && row.parentId === undefined);
	return { path: [], siblings: (await storage.read(roots, "rows")).checkpoints };
}

/** A row as the attribution of writes sees it. */
export function pathCheckpoint(row: FoundCheckpoint, head = unpackRow(row)): PathCheckpoint {
	const { id, parentId, source, step } = row;
	const { versions, seen, origin } = head;
	const resumedAt = origin?.resumedAt ?? seen.__interrupt__;
	const { actor, absorbed, again, firstVersions } = origin ?? {};
	return { id, parentId, source, step, versions, firstVersions, resumedAt, actor, again, absorbed };
}

function taskState(head: Made): TaskState {
	return {
		versions: head.versions,
		seen: head.seen,
		value: (channel) => {
			const cell = head.manifest.get(channel);
			return typeof cell === "object" ? String.fromCharCode(...cell.bytes) : cell;
		},
	};
}

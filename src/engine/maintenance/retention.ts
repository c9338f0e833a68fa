import { TASKS } from "@langchain/langgraph-checkpoint";
import type {
	CheckpointRow,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedCheckpoint,
	ThreadReading,
	WriteKey,
} from "../../storage/storage.ts";
import { isInternal } from "../delta-channels/origin.ts";
import { packHistory } from "../delta-channels/raw-history.ts";
import { walk } from "../delta-channels/walk.ts";
import type { Engine } from "../engine.ts";
import type { Head } from "../head.ts";
import { readOldSends } from "../old-sends.ts";
import { unpackRow } from "../rows.ts";
import { Rows, writtenChannels } from "./outline.ts";

/** What a thread needs so that some of its rows read the same without the others. */
export interface RetentionPlan {
	readonly removed: ListedCheckpoint[];
	/** Rows that stay, with the parent that they have then. */
	readonly relinked: CheckpointRow[];
	readonly deltaBases: DeltaBaseRow[];
}

/**
 * Plans to keep some of a thread's rows.
 *
 * A kept row whose parent goes is linked to its nearest kept ancestor. And where the history of its delta channels
 * would change, because an ancestor, a sibling or a write that it was told by is going, the history is recorded first.
 *
 * The plan is good for the stamp that the thread had before it was read.
 *
 * @param isPartialCopy writes that belong to no row stay behind too
 */
export async function planRetention(
	engine: Engine,
	{ checkpoints: rows, writes }: Omit<ThreadReading, "deltaBases">,
	kept: readonly ListedCheckpoint[],
	removedWrites: readonly WriteKey[],
	isPartialCopy = false,
): Promise<RetentionPlan> {
	const keptRows = new Set(kept);
	const namespaces = new Map<string, Relations>();
	for (const row of kept) {
		const relations = namespaces.get(row.ns) ?? new Relations(keptRows);
		namespaces.set(row.ns, relations);
		relations.keep(row);
	}
	for (const row of rows) namespaces.get(row.ns)?.add(row);
	for (const { ns, id } of removedWrites) namespaces.get(ns)?.rewrite(id);

	const relinked: CheckpointRow[] = [];
	const deltaBases: DeltaBaseRow[] = [];
	const written = writtenChannels(writes);
	const stored = new Rows(engine);
	await stored.prepare(kept);
	for (const listed of kept) {
		const relations = namespaces.get(listed.ns) as Relations;
		const row = await stored.get(listed);
		// Whoever has removed it has changed the stamp too.
		if (row === undefined) continue;
		const head = unpackRow(row);
		if (!relations.isDisturbed(row, head.origin?.copyOf, isPartialCopy)) continue;
		if (relations.losesParent(row)) relinked.push({ ...row, parentId: relations.nearestKept(row) });
		const channels = await deltaChannels(engine, row, relations, stored, written.get(row.ns) ?? []);
		deltaBases.push(...(await recordHistory(engine, row, head, channels)));
	}
	return { removed: rows.filter((row) => !keptRows.has(row)), relinked, deltaBases };
}

/** Who comes from whom among the checkpoints of a namespace, some of which are going. */
class Relations {
	readonly #kept: ReadonlySet<ListedCheckpoint>;
	readonly #rows = new Map<string, ListedCheckpoint>();
	/** The parents of those that stay, and whether another child of theirs is going. */
	readonly #parents = new Map<string, boolean>();
	/** The checkpoints that lose writes. */
	readonly #rewritten = new Set<string>();

	constructor(kept: ReadonlySet<ListedCheckpoint>) {
		this.#kept = kept;
	}

	/** To be called for all that stay, first. */
	keep({ parentId }: ListedCheckpoint): void {
		if (parentId !== undefined) this.#parents.set(parentId, false);
	}

	add(row: ListedCheckpoint): void {
		const { id, parentId } = row;
		this.#rows.set(id, row);
		if (parentId !== undefined && this.#parents.get(parentId) === false && !this.#kept.has(row))
			this.#parents.set(parentId, true);
	}

	rewrite(id: string): void {
		this.#rewritten.add(id);
	}

	parentOf({ parentId }: ListedCheckpoint): ListedCheckpoint | undefined {
		return parentId === undefined ? undefined : this.#rows.get(parentId);
	}

	/** Whether something that tells a kept row's history is going. */
	isDisturbed(row: ListedCheckpoint, copyOf: string | undefined, isPartialCopy: boolean): boolean {
		if (this.#isChanged(copyOf)) return true;
		const parent = this.parentOf(row);
		if (parent === undefined) return isPartialCopy;
		// The writes at a checkpoint are told apart by its children and by the writes at its own parent.
		return this.#isChanged(parent.id) || this.#isChanged(parent.parentId) || this.#parents.get(parent.id) === true;
	}

	#isChanged(id: string | undefined): boolean {
		const row = id === undefined ? undefined : this.#rows.get(id);
		return (row !== undefined && !this.#kept.has(row)) || (id !== undefined && this.#rewritten.has(id));
	}

	losesParent(row: ListedCheckpoint): boolean {
		const parent = this.parentOf(row);
		return parent !== undefined && !this.#kept.has(parent);
	}

	/** The id of the nearest ancestor that does not go. */
	nearestKept(row: ListedCheckpoint): string | undefined {
		let at = row;
		// Whoever has more ancestors than there are rows is one of them.
		for (let left = this.#rows.size; left > 0; left--) {
			const parent = this.parentOf(at);
			if (parent === undefined || this.#kept.has(parent)) return at.parentId;
			at = parent;
		}
		return undefined;
	}
}

async function recordHistory(
	engine: Engine,
	row: FoundCheckpoint,
	head: Head,
	channels: readonly string[],
): Promise<DeltaBaseRow[]> {
	const { threadId, ns, id } = row;
	const histories = await walk(engine, row, channels, { withoutOwn: true });
	if (head.v < 4) {
		const sends = (await readOldSends(engine, row)) ?? [];
		histories.set(TASKS, { seed: undefined, writes: sends.map((cell) => ({ taskId: "", cell })) });
	}
	return [...histories].map(([channel, history]) => ({ threadId, ns, id, channel, data: packHistory(history) }));
}

/**
 * Channels that may live from their history: those with a version or with writes, but no value. LangGraph's own are left out, whose
 * values are never rebuilt. One too many costs a little space; one too few would lose data.
 */
async function deltaChannels(
	engine: Engine,
	row: FoundCheckpoint,
	relations: Relations,
	stored: Rows,
	written: Iterable<string>,
): Promise<string[]> {
	const names = new Set(written);
	const own = unpackRow(row).manifest;
	const seen = new Set<string>();
	for (let at: FoundCheckpoint | undefined = row; at !== undefined && !seen.has(at.id); ) {
		seen.add(at.id);
		const head: Head = unpackRow(at);
		for (const channel of Object.keys(head.versions)) names.add(channel);
		// None of its ancestors has a channel that is rebuilt from writes.
		if (head.origin === undefined) break;
		const counters = await countersOf(engine, at, head);
		for (const channel of counters) names.add(channel);
		// Updates carry no counters; the nearest ancestor that does has them all.
		if (counters.length > 0) break;
		const parent = relations.parentOf(at);
		at = parent && (await stored.get(parent));
	}
	return [...names].filter((name) => !own.has(name) && !isInternal(name));
}

async function countersOf(engine: Engine, row: ListedCheckpoint, head: Head): Promise<string[]> {
	const metadata = await engine.decodeMetadata(row, head);
	return Object.keys(metadata?.counters_since_delta_snapshot ?? {});
}

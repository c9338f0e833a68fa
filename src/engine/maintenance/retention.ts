import { TASKS } from "@langchain/langgraph-checkpoint";
import { rowPages } from "../../storage/all-threads.ts";
import type {
	CheckpointKey,
	CheckpointRow,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedCheckpoint,
	ThreadOutline,
	WriteKey,
} from "../../storage/storage.ts";
import { isInternal } from "../delta-channels/origin.ts";
import { packHistory, type RawHistory } from "../delta-channels/raw-history.ts";
import { walk } from "../delta-channels/walk.ts";
import { type Engine, type View, viewOf } from "../engine.ts";
import { readOldSends } from "../old-sends.ts";
import { cacheKey } from "../rows.ts";

/** What a thread needs so that some of its rows read the same without the others. */
export interface RetentionPlan {
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
	{ checkpoints: rows, written }: ThreadOutline,
	kept: readonly ListedCheckpoint[],
	removedWrites: readonly WriteKey[],
	isPartialCopy = false,
): Promise<RetentionPlan> {
	const relations = new Relations(rows, kept, removedWrites);
	const channels = new Map<string, Set<string>>();
	for (const { ns, channel } of written) channels.set(ns, (channels.get(ns) ?? new Set()).add(channel));
	const plan: RetentionPlan = { relinked: [], deltaBases: [] };
	for await (const page of rowPages(engine.storage, kept))
		for (const row of page) {
			const view = viewOf(row);
			if (!relations.isDisturbed(row, view.head.origin?.copyOf, isPartialCopy)) continue;
			if (relations.losesParent(row)) plan.relinked.push({ ...row, parentId: relations.nearestKept(row) });
			plan.deltaBases.push(...(await recordHistory(engine, row, view, channels.get(row.ns) ?? [])));
		}
	return plan;
}

/** Who comes from whom among the checkpoints of a thread, some of which are going. */
class Relations {
	/** By namespace and id. */
	readonly #rows = new Map<string, Map<string, ListedCheckpoint>>();
	readonly #kept: ReadonlySet<ListedCheckpoint | undefined>;
	/** Checkpoints that lose a child. */
	readonly #bereft = new Set<ListedCheckpoint | undefined>();
	/** Keys of checkpoints that lose writes. */
	readonly #rewritten: ReadonlySet<string>;

	constructor(
		rows: readonly ListedCheckpoint[],
		kept: readonly ListedCheckpoint[],
		removedWrites: readonly WriteKey[],
	) {
		for (const row of rows) {
			const namespace = this.#rows.get(row.ns) ?? new Map<string, ListedCheckpoint>();
			this.#rows.set(row.ns, namespace.set(row.id, row));
		}
		this.#kept = new Set(kept.map(({ ns, id }) => this.#rows.get(ns)?.get(id)));
		for (const row of rows) if (!this.#kept.has(row)) this.#bereft.add(this.#parentOf(row));
		this.#rewritten = new Set(removedWrites.map(cacheKey));
	}

	/** Whether something that tells a kept row's history is going. */
	isDisturbed(row: ListedCheckpoint, copyOf: string | undefined, isPartialCopy: boolean): boolean {
		if (this.#isChanged(row, copyOf)) return true;
		const parent = this.#parentOf(row);
		if (parent === undefined) return isPartialCopy;
		// The writes at a checkpoint are told apart by its children and by the writes at its own parent.
		return this.#isChanged(row, parent.id) || this.#isChanged(row, parent.parentId) || this.#bereft.has(parent);
	}

	losesParent(row: ListedCheckpoint): boolean {
		const parent = this.#parentOf(row);
		return parent !== undefined && !this.#kept.has(parent);
	}

	/** The id of the nearest ancestor that does not go. */
	nearestKept(row: ListedCheckpoint): string | undefined {
		const seen = new Set<ListedCheckpoint>();
		for (let at = row; !seen.has(at); ) {
			const parent = this.#parentOf(at);
			if (parent === undefined || this.#kept.has(parent)) return at.parentId;
			seen.add(at);
			at = parent;
		}
		return undefined;
	}

	/** Whether a checkpoint in the namespace of a row is going, or loses writes. */
	#isChanged({ threadId, ns }: CheckpointKey, id: string | undefined): boolean {
		if (id === undefined) return false;
		const row = this.#rows.get(ns)?.get(id);
		return (row !== undefined && !this.#kept.has(row)) || this.#rewritten.has(cacheKey({ threadId, ns, id }));
	}

	#parentOf({ ns, parentId }: ListedCheckpoint): ListedCheckpoint | undefined {
		return parentId === undefined ? undefined : this.#rows.get(ns)?.get(parentId);
	}
}

async function recordHistory(
	engine: Engine,
	row: FoundCheckpoint,
	view: View,
	written: Iterable<string>,
): Promise<DeltaBaseRow[]> {
	const { threadId, ns, id } = row;
	const channels = await deltaChannels(engine, row, view, written);
	const histories =
		channels.length > 0 ? await walk(engine, row, channels, { withoutOwn: true }) : new Map<string, RawHistory>();
	if (view.head.v < 4) {
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
	{ threadId, ns }: CheckpointKey,
	view: View,
	written: Iterable<string>,
): Promise<string[]> {
	const names = new Set(written);
	const seen = new Set<string>();
	for (let at: View | undefined = view; at !== undefined && !seen.has(at.id); ) {
		const { id, parentId, head }: View = at;
		seen.add(id);
		for (const channel of Object.keys(head.versions)) names.add(channel);
		// None of its ancestors has a channel that is rebuilt from writes.
		if (head.origin === undefined) break;
		const metadata = await engine.decodeMetadata({ threadId, ns, id }, head);
		const counters = Object.keys(metadata?.counters_since_delta_snapshot ?? {});
		for (const channel of counters) names.add(channel);
		// Updates carry no counters; the nearest ancestor that does has them all.
		if (counters.length > 0) break;
		at = parentId === undefined ? undefined : await engine.loadView({ threadId, ns, id: parentId });
	}
	return [...names].filter((name) => !view.head.manifest.has(name) && !isInternal(name));
}

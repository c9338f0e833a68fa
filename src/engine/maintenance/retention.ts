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

/**
 * What a thread needs so that some of its rows read the same without the others.
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
): Promise<{ relinked: CheckpointRow[]; deltaBases: DeltaBaseRow[] }> {
	const relations = new Relations(rows, kept, removedWrites);
	const channels = new Map<string, Set<string>>();
	for (const { ns, channel } of written) channels.set(ns, (channels.get(ns) ?? new Set()).add(channel));
	const relinked: CheckpointRow[] = [];
	const deltaBases: DeltaBaseRow[] = [];
	for await (const page of rowPages(engine.storage, kept))
		for (const row of page) {
			const view = viewOf(row);
			if (!relations.isDisturbed(row, view.head.origin?.copyOf, isPartialCopy)) continue;
			const parentId = relations.nearestKept(row);
			if (parentId !== row.parentId) relinked.push({ ...row, parentId });
			deltaBases.push(...(await recordHistory(engine, row, view, channels.get(row.ns) ?? [])));
		}
	return { relinked, deltaBases };
}

/** Who comes from whom among the checkpoints of a thread, some of which are going. */
class Relations {
	/** By namespace and id. */
	readonly #rows = new Map<string, Map<string, ListedCheckpoint>>();
	readonly #going: ReadonlySet<ListedCheckpoint>;
	/** Checkpoints that are going, or lose writes. */
	readonly #changed: ReadonlySet<ListedCheckpoint>;
	/** Checkpoints that lose a child. */
	readonly #bereft: ReadonlySet<ListedCheckpoint>;

	constructor(rows: readonly ListedCheckpoint[], kept: readonly CheckpointKey[], removedWrites: readonly WriteKey[]) {
		for (const row of rows) this.#rows.set(row.ns, (this.#rows.get(row.ns) ?? new Map()).set(row.id, row));
		const stays = new Set(kept.map(({ ns, id }) => this.#find(ns, id)));
		const going = rows.filter((row) => !stays.has(row));
		this.#going = new Set(going);
		this.#changed = new Set([...going, ...removedWrites.flatMap(({ ns, id }) => this.#find(ns, id) ?? [])]);
		this.#bereft = new Set(going.flatMap(({ ns, parentId }) => this.#find(ns, parentId) ?? []));
	}

	/** Whether something that tells a kept row's history is going. */
	isDisturbed({ ns, parentId }: ListedCheckpoint, copyOf: string | undefined, isPartialCopy: boolean): boolean {
		const parent = this.#find(ns, parentId);
		// The writes at a checkpoint are told apart by its children and by the writes at its own parent.
		const tellers = [this.#find(ns, copyOf), parent, this.#find(ns, parent?.parentId)];
		if (tellers.some((row) => row !== undefined && this.#changed.has(row))) return true;
		return parent === undefined ? isPartialCopy : this.#bereft.has(parent);
	}

	/** The id of the nearest ancestor that does not go. */
	nearestKept(row: ListedCheckpoint): string | undefined {
		let at = row;
		for (const seen = new Set<ListedCheckpoint>(); !seen.has(at); ) {
			seen.add(at);
			const parent = this.#find(at.ns, at.parentId);
			if (parent === undefined || !this.#going.has(parent)) return at.parentId;
			at = parent;
		}
		return undefined;
	}

	#find(ns: string, id: string | undefined): ListedCheckpoint | undefined {
		return id === undefined ? undefined : this.#rows.get(ns)?.get(id);
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

import { TASKS } from "@langchain/langgraph-checkpoint";
import type { DeltaBaseRow, FoundCheckpoint, RemoveBatch, WriteKey } from "../storage/storage.ts";
import type { Engine } from "./engine.ts";
import { readOldSends } from "./old-sends.ts";
import { isInternal } from "./origin.ts";
import { packHistory } from "./raw-history.ts";
import { cacheKey, unpackRow } from "./rows.ts";
import { walk } from "./walk.ts";

/** What a thread needs so that some of its rows read the same without the others. */
export interface RetentionPlan {
	readonly removed: FoundCheckpoint[];
	readonly relink: RemoveBatch["relink"];
	readonly deltaBases: DeltaBaseRow[];
}

/**
 * Plans to keep some of a thread's rows.
 *
 * A kept row whose parent goes is linked to its nearest kept ancestor. And where the history of its delta channels
 * would change, because an ancestor, a sibling or a write that it was told by is going, the history is recorded first.
 *
 * @param isPartialCopy writes that belong to no row stay behind too
 */
export async function planRetention(
	engine: Engine,
	rows: readonly FoundCheckpoint[],
	kept: readonly FoundCheckpoint[],
	removedWrites: readonly WriteKey[],
	isPartialCopy = false,
): Promise<RetentionPlan> {
	const byKey = new Map(rows.map((row) => [cacheKey(row), row]));
	const keptKeys = new Set(kept.map(cacheKey));
	const removed = rows.filter((row) => !keptKeys.has(cacheKey(row)));
	const parentKey = (row: FoundCheckpoint) =>
		row.parentId === undefined ? undefined : cacheKey({ ...row, id: row.parentId });
	// The writes at a checkpoint are told apart by its children and by the writes at its own parent.
	const changed = new Set([...removed.map(cacheKey), ...removedWrites.map(cacheKey)]);
	const isDisturbed = (row: FoundCheckpoint) => {
		const { copyOf } = unpackRow(row).origin ?? {};
		if (copyOf !== undefined && changed.has(cacheKey({ ...row, id: copyOf }))) return true;
		const parent = byKey.get(parentKey(row) ?? "");
		if (parent === undefined) return isPartialCopy;
		return changed.has(cacheKey(parent)) || changed.has(parentKey(parent) ?? "") || losesChild.has(cacheKey(parent));
	};
	const losesChild = new Set(removed.map(parentKey));

	const written = await writtenChannels(engine, rows[0]?.threadId);
	const relink: { key: FoundCheckpoint; parentId: string | undefined }[] = [];
	const deltaBases: DeltaBaseRow[] = [];
	for (const row of kept) {
		if (!isDisturbed(row)) continue;
		const parent = parentKey(row);
		if (parent !== undefined && byKey.has(parent) && !keptKeys.has(parent))
			relink.push({ key: row, parentId: nearestKept(row) });
		deltaBases.push(...(await recordHistory(engine, row, byKey, written.get(row.ns) ?? [])));
	}
	return { removed, relink, deltaBases };

	function nearestKept(row: FoundCheckpoint): string | undefined {
		const seen = new Set<string>();
		let at: FoundCheckpoint | undefined = row;
		for (;;) {
			const key: string | undefined = at && parentKey(at);
			if (key === undefined || seen.has(key)) return undefined;
			if (keptKeys.has(key) || !byKey.has(key)) return at?.parentId;
			seen.add(key);
			at = byKey.get(key);
		}
	}
}

async function recordHistory(
	engine: Engine,
	row: FoundCheckpoint,
	byKey: ReadonlyMap<string, FoundCheckpoint>,
	written: Iterable<string>,
): Promise<DeltaBaseRow[]> {
	const channels = await deltaChannels(engine, row, byKey, written);
	const { threadId, ns, id } = row;
	const histories = await walk(engine, row, channels, { withoutOwn: true });
	if (unpackRow(row).v < 4) {
		const sends = (await readOldSends(engine, [row])).get(cacheKey(row)) ?? [];
		histories.set(TASKS, { seed: undefined, writes: sends.map((cell) => ({ taskId: "", cell })) });
	}
	return [...histories].map(([channel, history]) => ({ threadId, ns, id, channel, data: packHistory(history) }));
}

/** The channels that writes of each namespace are for. */
async function writtenChannels(engine: Engine, threadId: string | undefined): Promise<Map<string, Set<string>>> {
	const written = new Map<string, Set<string>>();
	if (threadId === undefined) return written;
	for (const { ns, channel } of await engine.storage.getThreadWrites(threadId))
		written.set(ns, (written.get(ns) ?? new Set()).add(channel));
	return written;
}

/**
 * Channels that may live from their history: those with a version or with writes, but no value. LangGraph's own are left out, whose
 * values are never rebuilt. One too many costs a little space; one too few would lose data.
 */
async function deltaChannels(
	engine: Engine,
	row: FoundCheckpoint,
	byKey: ReadonlyMap<string, FoundCheckpoint>,
	written: Iterable<string>,
): Promise<string[]> {
	const names = new Set(written);
	const head = unpackRow(row);
	const seen = new Set<FoundCheckpoint>();
	for (let at: FoundCheckpoint | undefined = row; at !== undefined && !seen.has(at); ) {
		seen.add(at);
		const { versions, origin } = unpackRow(at);
		for (const channel of Object.keys(versions)) names.add(channel);
		// None of its ancestors has a channel that is rebuilt from writes.
		if (origin === undefined) break;
		const counters = await countersOf(engine, at);
		for (const channel of counters) names.add(channel);
		// Updates carry no counters; the nearest ancestor that does has them all.
		if (counters.length > 0) break;
		at = at.parentId === undefined ? undefined : byKey.get(cacheKey({ ...at, id: at.parentId }));
	}
	return [...names].filter((name) => !head.manifest.has(name) && !isInternal(name));
}

async function countersOf(engine: Engine, row: FoundCheckpoint): Promise<string[]> {
	const metadata = await engine.decodeCell(row, "metadata", unpackRow(row).metadata, new Map());
	const counters = (metadata as { counters_since_delta_snapshot?: object } | undefined)?.counters_since_delta_snapshot;
	return Object.keys(counters ?? {});
}

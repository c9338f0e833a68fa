import { CheckpointError, quote } from "../../errors.ts";
import { rowPages } from "../../storage/all-threads.ts";
import type { CopyBatch, ListedCheckpoint } from "../../storage/storage.ts";
import { busy, type Engine, MOST_ATTEMPTS } from "../engine.ts";
import { unpackRow } from "../rows.ts";
import { newestOfEach } from "./remove.ts";
import { planRetention } from "./retention.ts";
import type { Copied, CopyThreadOptions } from "./types.ts";

/** Copies a thread, or a part of it, to another one that shares its blobs. */
export async function copyThread(
	engine: Engine,
	source: string,
	target: string,
	options: CopyThreadOptions,
): Promise<Copied> {
	const { storage, blobs } = engine;
	for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
		if ((await storage.getThread(target)) !== undefined)
			throw new CheckpointError(
				"THREAD_EXISTS",
				`Can't copy thread ${quote(source)} to ${quote(target)}, which is there already: delete it first, or name another.`,
			);
		const thread = await storage.getThread(source);
		if (thread === undefined) return { checkpoints: 0, writes: 0 };
		const content = await choose(engine, source, target, options);
		const fresh = await blobs.nextId();
		const copied = await storage.copy({ source, stamp: thread.stamp, target, fresh, now: Date.now(), ...content });
		if (copied !== undefined) return { checkpoints: copied.checkpoints, writes: copied.writes };
	}
	throw busy(source);
}

/** What a copy takes, and what it needs because the rest stays behind. */
async function choose(
	engine: Engine,
	threadId: string,
	target: string,
	{ upTo, latestOnly }: CopyThreadOptions,
): Promise<Pick<CopyBatch, "keys" | "checkpoints" | "writes" | "deltaBases">> {
	if (upTo === undefined && !latestOnly) return { keys: undefined, checkpoints: [], writes: [], deltaBases: [] };
	const outline = await engine.storage.readOutline(threadId);
	const kept =
		upTo === undefined
			? newestOfEach(outline.checkpoints, 1)
			: await ancestorsOf(engine, threadId, outline.checkpoints, upTo);
	const plan = await planRetention(engine, outline, kept, [], true);
	return {
		keys: kept,
		checkpoints: plan.relinked.map((row) => ({ ...row, threadId: target })),
		writes: [],
		deltaBases: plan.deltaBases.map((row) => ({ ...row, threadId: target })),
	};
}

/** A checkpoint of the root namespace, its ancestors, and what subgraphs stored under any of them. */
async function ancestorsOf(
	engine: Engine,
	threadId: string,
	rows: readonly ListedCheckpoint[],
	upTo: string,
): Promise<ListedCheckpoint[]> {
	const byId = new Map(rows.filter((row) => row.ns === "").map((row) => [row.id, row]));
	if (!byId.has(upTo))
		throw new CheckpointError("NOT_FOUND", `Thread ${quote(threadId)} has no checkpoint ${quote(upTo)} to copy up to.`);
	const roots = new Set<string>();
	for (let id: string | undefined = upTo; id !== undefined && !roots.has(id); id = byId.get(id)?.parentId)
		roots.add(id);
	const kept: ListedCheckpoint[] = rows.filter((row) => row.ns === "" && roots.has(row.id));
	const others = rows.filter((row) => row.ns !== "");
	for await (const page of rowPages(engine.storage, others))
		for (const row of page) {
			const metadata = await engine.decodeMetadata(row, unpackRow(row));
			if (roots.has(metadata?.parents?.[""] as string)) kept.push(row);
		}
	return kept;
}

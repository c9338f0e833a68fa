import { CheckpointError, quote } from "../../errors.ts";
import type { Copied, CopyThreadOptions, Removed, Stats, ThreadInfo, ThreadPage } from "../../saver/types.ts";
import type {
	CheckpointKey,
	FoundCheckpoint,
	ListedCheckpoint,
	RowCount,
	ThreadRow,
	WriteKey,
} from "../../storage/storage.ts";
import type { Engine } from "../engine.ts";
import type { Pause } from "../pause.ts";
import { cacheKey, unpackRow } from "../rows.ts";
import { collectFamily, markThread } from "./collect.ts";
import { readOutline } from "./outline.ts";
import { planRetention } from "./retention.ts";

/** The plan is made anew when a thread changes under it; this often in a row it is being deleted from elsewhere all the time. */
const MOST_ATTEMPTS = 20;

/** Checkpoints that are removed in one go: writers wait for no more than that. */
const BATCH_CHECKPOINTS = 1000;

/** More than any page of threads has. A database takes no larger numbers than this, or takes them for fractions. */
const MOST_THREADS = 2 ** 31 - 2;

/** Copies, prunes, deletes, lists and counts threads. */
export class Maintenance {
	readonly #engine: Engine;

	constructor(engine: Engine) {
		this.#engine = engine;
	}

	async deleteThread(threadId: string): Promise<Removed> {
		const thread = await this.#engine.storage.getThread(threadId);
		if (thread === undefined) return nothing();
		const rows = await this.#engine.storage.removeThread(threadId);
		this.#engine.links.forget(threadId);
		return this.#collect(thread.family, rows);
	}

	/**
	 * Keeps the newest `keep` checkpoints of each namespace.
	 */
	async prune(threadIds: readonly string[], keep: number, pause: Pause): Promise<Removed> {
		const removed = nothing();
		for (const threadId of new Set(threadIds)) {
			await pause();
			const one =
				keep === 0
					? await this.deleteThread(threadId)
					: await this.#retain(threadId, (rows) => newestOfEach(rows, keep), [], pause);
			add(removed, one);
		}
		return removed;
	}

	/** @param within the threads to look into; all if undefined */
	async deleteForRuns(
		runIds: readonly string[],
		within: readonly string[] | undefined,
		pause: Pause,
	): Promise<Removed> {
		const removed = nothing();
		if (runIds.length === 0) return removed;
		const found = await this.#engine.storage.findRuns(runIds);
		const threads = new Set([...found.checkpoints, ...found.writes].map(({ threadId }) => threadId));
		for (const threadId of threads) {
			if (within !== undefined && !within.includes(threadId)) continue;
			const gone = new Set(found.checkpoints.filter((key) => key.threadId === threadId).map(cacheKey));
			const writes = found.writes.filter((key) => key.threadId === threadId && !gone.has(cacheKey(key)));
			const survives = (row: ListedCheckpoint) => !gone.has(cacheKey(row));
			add(removed, await this.#retain(threadId, (rows) => rows.filter(survives), writes, pause));
		}
		return removed;
	}

	/** Removes all checkpoints of a thread but some, the oldest first, and some writes of those. */
	async #retain(
		threadId: string,
		choose: (rows: readonly ListedCheckpoint[]) => ListedCheckpoint[],
		writes: readonly WriteKey[],
		pause: Pause,
	): Promise<Removed> {
		const { storage, blobs, links } = this.#engine;
		const removed = nothing();
		let hasTwins = true;
		for (let attempt = 1, left = writes; attempt <= MOST_ATTEMPTS; ) {
			await pause();
			const thread = await storage.getThread(threadId);
			if (thread === undefined) return removed;
			const outline = await readOutline(this.#engine, threadId);
			const rows = outline.checkpoints;
			const chosen = choose(rows);
			// Even then values that were replaced since the last time may be given back.
			if (chosen.length === rows.length && left.length === 0) return this.#collect(thread.family, removed);
			if (chosen.length === 0 && rows.length > 0) return sum(removed, await this.deleteThread(threadId));
			const kept = withoutOldest(rows, chosen);
			const plan = await planRetention(this.#engine, outline, kept, left);
			const { removed: checkpoints, relink, deltaBases } = plan;
			const newStamp = await blobs.nextId();
			const batch = { threadId, stamp: thread.stamp, newStamp, checkpoints, writes: left, relink, deltaBases };
			const gone = await storage.remove(batch);
			links.forget(threadId);
			attempt = gone === undefined ? attempt + 1 : 1;
			if (gone === undefined) continue;
			add(removed, gone);
			hasTwins &&= gone.hasTwins === true;
			left = [];
			if (kept.length === chosen.length) return hasTwins ? removed : this.#collect(thread.family, removed);
		}
		throw new CheckpointError(
			"BUSY",
			`Checkpoints of thread ${quote(threadId)} are being deleted elsewhere; try again.`,
		);
	}

	async #collect(family: number, rows: RowCount): Promise<Removed> {
		const { checkpoints, writes, bytes } = rows;
		return sum({ checkpoints, writes, bytes, blobs: 0 }, await collectFamily(this.#engine, family));
	}

	async copyThread(source: string, target: string, options: CopyThreadOptions): Promise<Copied> {
		const { storage, blobs } = this.#engine;
		for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
			if ((await storage.getThread(target)) !== undefined)
				throw new CheckpointError(
					"THREAD_EXISTS",
					`Can't copy thread ${quote(source)} to ${quote(target)}, which is there already: delete it first, or name another.`,
				);
			const thread = await storage.getThread(source);
			if (thread === undefined) return { checkpoints: 0, writes: 0 };
			const chosen = await this.#choose(source, options);
			const copied = await storage.copy({
				source,
				stamp: thread.stamp,
				target,
				fresh: await blobs.nextId(),
				now: Date.now(),
				checkpoints: chosen?.checkpoints,
				deltaBases: chosen?.deltaBases ?? [],
			});
			if (copied !== undefined) return { checkpoints: copied.checkpoints, writes: copied.writes };
		}
		throw new CheckpointError(
			"BUSY",
			`Checkpoints of thread ${quote(source)} are being deleted all the time; try again.`,
		);
	}

	/** What a copy takes, `undefined` for everything. */
	async #choose(threadId: string, { upTo, latestOnly }: CopyThreadOptions) {
		if (upTo === undefined && !latestOnly) return undefined;
		const rows: FoundCheckpoint[] = [];
		for await (const row of this.#engine.scanAll({ threadId })) rows.push(row);
		const kept = upTo === undefined ? newestOfEach(rows, 1) : this.#upTo(threadId, rows, upTo);
		const { relink, deltaBases } = await planRetention(this.#engine, { checkpoints: rows }, kept, [], true);
		const parents = new Map(relink.map(({ key, parentId }) => [cacheKey(key), parentId]));
		const checkpoints = kept.map((key) => {
			const id = cacheKey(key);
			return { key, parentId: parents.has(id) ? parents.get(id) : key.parentId };
		});
		return { checkpoints, deltaBases };
	}

	/** A checkpoint of the root namespace, its ancestors, and what subgraphs stored under any of them. */
	#upTo(threadId: string, rows: readonly FoundCheckpoint[], upTo: string): FoundCheckpoint[] {
		const byId = new Map(rows.filter((row) => row.ns === "").map((row) => [row.id, row]));
		if (!byId.has(upTo))
			throw new CheckpointError(
				"NOT_FOUND",
				`Thread ${quote(threadId)} has no checkpoint ${quote(upTo)} to copy up to.`,
			);
		const kept = new Set<string>();
		for (let id: string | undefined = upTo; id !== undefined && !kept.has(id); id = byId.get(id)?.parentId)
			kept.add(id);
		const isUnder = (row: FoundCheckpoint) => this.#rootOf(row, kept);
		return rows.filter((row) => (row.ns === "" ? kept.has(row.id) : isUnder(row)));
	}

	/** Whether the root checkpoint under which a subgraph's row was stored is one of these. */
	#rootOf(row: FoundCheckpoint, roots: ReadonlySet<string>): boolean {
		const metadata = this.#engine.decodeCell(row, "metadata", unpackRow(row).metadata, new Map());
		const root = (metadata as { parents?: Record<string, unknown> } | undefined)?.parents?.[""];
		return typeof root === "string" && roots.has(root);
	}

	async listThreads(limit: number, after: string | undefined): Promise<ThreadPage> {
		if (!Number.isInteger(limit) || limit < 0)
			throw new CheckpointError("INVALID_OPTION", `\`limit\` must be a whole number from 0, got ${quote(limit)}.`);
		if (limit === 0) return { threads: [], next: undefined };
		const place = after === undefined ? undefined : readCursor(after);
		const rows = await this.#engine.storage.listThreads(Math.min(limit, MOST_THREADS) + 1, place);
		const page = rows.slice(0, limit);
		const last = page.at(-1);
		return {
			threads: page.map(describeThread),
			next: rows.length > limit && last ? JSON.stringify([last.updatedAt, last.threadId]) : undefined,
		};
	}

	async getThread(threadId: string): Promise<ThreadInfo | undefined> {
		const row = await this.#engine.storage.getThread(threadId);
		return row && describeThread(row);
	}

	async stats(): Promise<Stats> {
		const { storage } = this.#engine;
		const { bytes, ...counts } = await storage.totals();
		const blobs = { whole: 0, patched: 0 };
		const channels = new Map<string, { channel: string; blobs: number; bytes: number }>();
		for (const family of await this.#families()) {
			const owners = new Map<number, string>();
			for (const { threadId } of family.threads)
				await markThread(this.#engine, threadId, (id, channel) => owners.set(id, channel));
			const rows = await storage.listBlobs(family.id);
			const byId = new Map(rows.map((row) => [row.id, row]));
			// A map goes on to what is added to it on the way.
			for (const [id, channel] of owners)
				for (const other of [byId.get(id)?.base, byId.get(id)?.source])
					if (other !== undefined && !owners.has(other)) owners.set(other, channel);
			for (const row of rows) {
				blobs[row.base === undefined ? "whole" : "patched"]++;
				const channel = owners.get(row.id) ?? "";
				const entry = channels.get(channel) ?? { channel, blobs: 0, bytes: 0 };
				channels.set(channel, { channel, blobs: entry.blobs + 1, bytes: entry.bytes + row.bytes });
			}
		}
		return { ...counts, blobs, bytes, channels: [...channels.values()].sort((a, b) => b.bytes - a.bytes) };
	}

	async #families(): Promise<Iterable<{ id: number; threads: ThreadRow[] }>> {
		const families = new Map<number, { id: number; threads: ThreadRow[] }>();
		let after: ThreadRow | undefined;
		do {
			const page = await this.#engine.storage.listThreads(256, after);
			for (const thread of page) {
				const family = families.get(thread.family) ?? { id: thread.family, threads: [] };
				family.threads.push(thread);
				families.set(thread.family, family);
			}
			after = page.at(-1);
		} while (after !== undefined);
		return families.values();
	}
}

/** All rows but the oldest of those that were not chosen: as many as can go at once. */
function withoutOldest(rows: readonly ListedCheckpoint[], chosen: readonly ListedCheckpoint[]): ListedCheckpoint[] {
	if (rows.length - chosen.length <= BATCH_CHECKPOINTS) return [...chosen];
	const stays = new Set(chosen);
	const going = rows.filter((row) => !stays.has(row)).slice(-BATCH_CHECKPOINTS);
	const goes = new Set(going);
	return rows.filter((row) => !goes.has(row));
}

function newestOfEach<T extends ListedCheckpoint>(rows: readonly T[], count: number): T[] {
	const taken = new Map<string, number>();
	// Rows of a scan come newest first.
	return rows.filter(({ ns }) => {
		const before = taken.get(ns) ?? 0;
		if (before < count) taken.set(ns, before + 1);
		return before < count;
	});
}

function describeThread({ threadId, createdAt, updatedAt, checkpoints, head }: ThreadRow): ThreadInfo {
	return { threadId, createdAt: new Date(createdAt), updatedAt: new Date(updatedAt), checkpoints, head };
}

function readCursor(after: string): { updatedAt: number; threadId: string } {
	try {
		const [updatedAt, threadId] = JSON.parse(after) as unknown[];
		if (typeof updatedAt === "number" && typeof threadId === "string") return { updatedAt, threadId };
	} catch {}
	throw new CheckpointError(
		"INVALID_OPTION",
		`\`after\` must be the \`next\` of an earlier page, got ${quote(after)}.`,
	);
}

function nothing(): Removed {
	return { checkpoints: 0, writes: 0, blobs: 0, bytes: 0 };
}

function add(total: Removed, part: Partial<Removed>): void {
	total.checkpoints += part.checkpoints ?? 0;
	total.writes += part.writes ?? 0;
	total.blobs += part.blobs ?? 0;
	total.bytes += part.bytes ?? 0;
}

function sum(one: Removed, other: Partial<Removed>): Removed {
	const both = { ...one };
	add(both, other);
	return both;
}

export type { CheckpointKey };

import { compareIds } from "../storage/compare-ids.ts";
import type { PathCheckpoint } from "./attribution.ts";
import { Lru } from "./lru.ts";
import type { PastWrite, RawHistory } from "./raw-history.ts";

/** One checkpoint's part in the history of a channel, for one of its children. */
export interface Link {
	readonly id: string;
	/** Its own writes, and those at its parent that made it, oldest first. */
	readonly own: readonly PastWrite[];
	readonly before: readonly PastWrite[];
	/** What is known of all that came earlier, if the history ends here. */
	readonly start: RawHistory | undefined;
	/** Where it goes on otherwise. */
	readonly next: NextLink | undefined;
	/** The checkpoints whose rows, writes or children it was made from. */
	readonly dependsOn: readonly string[];
}

export interface NextLink {
	readonly id: string;
	/** The checkpoint on the way from there to where the history is asked for. */
	readonly newer: PathCheckpoint | undefined;
	/** Found before, and perhaps outdated since. */
	known?: Link;
}

/** What a link without any writes takes in memory, about. */
const LINK_BYTES = 400;
/** Stands for writes whose checkpoint has no row. */
export const ORPHANS = "";

/**
 * Remembers the links of recent histories.
 *
 * A history is asked for at every run of a graph, and hardly differs from the one before. A link holds until something
 * changes at a checkpoint that it was made from: this process tells what it changes, the storage whether anybody else
 * did.
 */
export class LinkCache {
	readonly #threads: Lru<string, ThreadLinks>;

	constructor(limit: number) {
		this.#threads = new Lru(limit);
	}

	/** What is remembered of a thread, whether or not it still holds. */
	peek(threadId: string): ThreadLinks | undefined {
		return this.#threads.get(threadId);
	}

	/**
	 * What is remembered of a thread and still holds, to be filled further: it is told of changes from now on.
	 *
	 * @param epoch the storage's, see `Storage.getEpoch`
	 */
	open(threadId: string, epoch: number): ThreadLinks {
		const known = this.#threads.get(threadId);
		if (known?.epoch === epoch) return known;
		known?.end();
		const links = new ThreadLinks(epoch);
		this.#threads.set(threadId, links, 0);
		return links;
	}

	/** Counts what was filled in, unless it was forgotten meanwhile. */
	keep(threadId: string, links: ThreadLinks): void {
		if (this.#threads.get(threadId) === links) this.#threads.set(threadId, links, links.bytes);
	}

	/**
	 * To be called for whatever this process stored: checkpoints, their parents, and what writes were stored at.
	 *
	 * @param orphanAt what writes were stored at, if that may have no row
	 */
	change(threadId: string, ns: string, ids: readonly (string | undefined)[], orphanAt?: string): void {
		this.#threads.get(threadId)?.change(ns, ids, orphanAt);
	}

	forget(threadId: string): void {
		this.#threads.get(threadId)?.end();
		this.#threads.delete(threadId);
	}

	clear(): void {
		this.#threads.clear();
	}
}

/** The links of one thread. */
export class ThreadLinks {
	readonly epoch: number;
	bytes = 0;
	/** Counts changes: what was read before one may not be kept after it. */
	changes = 0;
	readonly #links = new Map<string, Link>();
	readonly #outdated = new WeakSet<Link>();
	readonly #dependents = new Map<string, Set<string>>();

	constructor(epoch: number) {
		this.epoch = epoch;
	}

	find(ns: string, channel: string, { id, newer, known }: NextLink): Link | undefined {
		if (known !== undefined && !this.#outdated.has(known)) return known;
		return this.#links.get(keyOf(ns, channel, newer?.id ?? "", id));
	}

	add(ns: string, channel: string, newer: PathCheckpoint | undefined, link: Link): void {
		const key = keyOf(ns, channel, newer?.id ?? "", link.id);
		this.#links.set(key, link);
		for (const write of [...link.own, ...link.before])
			if (typeof write.cell === "object") this.bytes += write.cell.bytes.length;
		this.bytes += LINK_BYTES;
		for (const id of link.dependsOn) {
			const place = keyOf(ns, id);
			const dependents = this.#dependents.get(place);
			if (dependents === undefined) this.#dependents.set(place, new Set([key]));
			else dependents.add(key);
		}
	}

	change(ns: string, ids: readonly (string | undefined)[], orphanAt: string | undefined): void {
		this.changes++;
		for (const id of ids) {
			if (id === undefined) continue;
			const place = keyOf(ns, id);
			for (const key of this.#dependents.get(place) ?? []) this.#remove(key);
			this.#dependents.delete(place);
		}
		if (orphanAt === undefined) return;
		// Only a checkpoint without a parent looks for writes without a row, and only for older ones.
		for (const key of this.#dependents.get(keyOf(ns, ORPHANS)) ?? []) {
			const link = this.#links.get(key);
			if (link !== undefined && compareIds(orphanAt, link.id) < 0) this.#remove(key);
		}
	}

	/** Whoever still fills it must not be believed. */
	end(): void {
		this.changes++;
	}

	#remove(key: string): void {
		const link = this.#links.get(key);
		if (link === undefined) return;
		this.#outdated.add(link);
		this.#links.delete(key);
	}
}

/** Unique for its parts: the lengths keep them apart. */
function keyOf(...parts: string[]): string {
	return parts.map((part) => `${part.length}:${part}`).join("");
}

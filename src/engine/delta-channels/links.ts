import type { Lru } from "../../lru.ts";
import { compareIds } from "../../storage/compare-ids.ts";
import type { PastWrite, RawHistory } from "./raw-history.ts";

/** A checkpoint, and the one on the way from it to where a history is asked for, unless it is asked for there. */
export interface Place {
	readonly id: string;
	readonly newerId: string | undefined;
}

/** One checkpoint's part in the history of a channel, for one of its children. */
export interface Link extends Place {
	/** Its own writes, and those at its parent that made it, oldest first. */
	readonly own: readonly PastWrite[];
	readonly before: readonly PastWrite[];
	/** What is known of all that came earlier, if the history ends here. */
	readonly start: RawHistory | undefined;
	/** Where it continues otherwise. */
	readonly next: Place | undefined;
	/** The link where it continues, as it was found before. */
	nextLink: Link | undefined;
	/** Whether something changed at a checkpoint that it was made from. */
	isOutdated: boolean;
}

/** What a link without any writes takes in memory, about. */
const LINK_BYTES = 250;
/** Stands for writes whose checkpoint has no row. */
export const ORPHANS = "";

/**
 * Remembers the links of recent histories, by thread.
 *
 * A history is asked for at every run of a graph, and hardly differs from the one before. A link holds until something
 * changes at a checkpoint that it was made from: this process tells what it changes, the storage whether anybody else
 * did.
 */
export class LinkCache {
	readonly #cache: Lru<string, ThreadLinks>;

	constructor(cache: Lru<string, ThreadLinks>) {
		this.#cache = cache;
	}

	/** What is remembered of a thread, whether or not it still holds. */
	peek(threadId: string): ThreadLinks | undefined {
		return this.#cache.get(keyOf(threadId));
	}

	/**
	 * What is remembered of a thread and still holds, to be filled further: it is told of changes from now on.
	 *
	 * @param epoch the storage's, see `PathReading.epoch`
	 */
	open(threadId: string, epoch: number): ThreadLinks {
		const known = this.peek(threadId);
		if (known?.epoch === epoch) return known;
		known?.end();
		const links = new ThreadLinks(epoch);
		this.#cache.set(keyOf(threadId), links, LINK_BYTES);
		return links;
	}

	/** Counts what was filled in, unless it was forgotten meanwhile. */
	keep(threadId: string, links: ThreadLinks): void {
		if (this.peek(threadId) === links) this.#cache.set(keyOf(threadId), links, LINK_BYTES + links.bytes);
	}

	/**
	 * To be called for whatever this process stored: checkpoints, their parents, and what writes were stored at.
	 *
	 * @param orphanAt what writes were stored at, if that may have no row
	 */
	change(threadId: string, ns: string, ids: readonly (string | undefined)[], orphanAt?: string): void {
		this.peek(threadId)?.change(ns, ids, orphanAt);
	}

	forget(threadId: string): void {
		this.peek(threadId)?.end();
		this.#cache.delete(keyOf(threadId));
	}
}

/** No namespace has such a key, as those begin with a number. */
function keyOf(threadId: string): string {
	return `links ${threadId}`;
}

/** The links of one thread. */
export class ThreadLinks {
	readonly epoch: number;
	bytes = 0;
	/** Counts changes: what was read before one may not be kept after it. */
	changes = 0;
	/** By namespace, channel and checkpoint: the links that were made from it, its own among them. */
	readonly #dependents = new Map<string, Map<string, Map<string, Link[]>>>();

	constructor(epoch: number) {
		this.epoch = epoch;
	}

	find(ns: string, channel: string, { id, newerId }: Place): Link | undefined {
		const links = this.#dependents.get(ns)?.get(channel)?.get(id);
		return links?.find((link) => link.id === id && link.newerId === newerId && !link.isOutdated);
	}

	/** @param dependsOn the checkpoints whose rows, writes or children it was made from */
	add(ns: string, channel: string, link: Link, dependsOn: readonly string[]): void {
		const older = this.find(ns, channel, link);
		if (older !== undefined) older.isOutdated = true;
		const channels = getOrAdd(this.#dependents, ns, () => new Map<string, Map<string, Link[]>>());
		const dependents = getOrAdd(channels, channel, () => new Map<string, Link[]>());
		for (const id of dependsOn) {
			const others = (dependents.get(id) ?? []).filter(({ isOutdated }) => !isOutdated);
			dependents.set(id, [...others, link]);
		}
		this.bytes += LINK_BYTES;
		for (const { cell } of [...link.own, ...link.before])
			this.bytes += typeof cell === "number" ? 0 : cell.bytes.length;
	}

	change(ns: string, ids: readonly (string | undefined)[], orphanAt: string | undefined): void {
		this.changes++;
		for (const dependents of this.#dependents.get(ns)?.values() ?? []) {
			for (const id of ids) {
				if (id === undefined) continue;
				for (const link of dependents.get(id) ?? []) link.isOutdated = true;
				dependents.delete(id);
			}
			// Only a checkpoint without a parent looks for writes without a row, and only for older ones.
			if (orphanAt !== undefined)
				for (const link of dependents.get(ORPHANS) ?? []) if (compareIds(orphanAt, link.id) < 0) link.isOutdated = true;
		}
	}

	/** Whoever still fills it must not be believed. */
	end(): void {
		this.changes++;
	}
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
	const known = map.get(key);
	if (known !== undefined) return known;
	const made = make();
	map.set(key, made);
	return made;
}

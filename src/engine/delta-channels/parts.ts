import type { PathReading } from "../../storage/storage.ts";
import type { PastWrite, RawHistory } from "./raw-history.ts";

/** A checkpoint, and the one on the way from it to where a history is asked for, unless it is asked for there. */
export interface Place {
	readonly id: string;
	readonly newerId: string | undefined;
}

/** What one checkpoint adds to the history of a channel, for one of its children. */
export interface Part extends Place {
	/** Its own writes, after those at its parent that made it. */
	readonly writes: readonly PastWrite[];
	/** What is known of all that came earlier, if the history ends here. */
	readonly start: RawHistory | undefined;
	/** Where it continues otherwise. */
	readonly next: Place | undefined;
	/** The greatest id of those whose writes and children it was made from: what is stored at a greater one is no matter. */
	readonly newest: string;
}

/** What a part without any writes takes in memory, about. */
const PART_BYTES = 250;

/** Changes with all that happens to a thread, except for what this process adds. */
export function versionOf({ epoch, path: [row] }: PathReading): string | undefined {
	return row && `${epoch} ${row.stamp}`;
}

/**
 * The parts of recent histories of one namespace. A history is asked for at every run of a graph, and hardly differs from the
 * one before. A part holds until something is added where it was made from, which this process tells, or the thread has
 * another version.
 */
export class Parts {
	/** See {@link versionOf}. */
	version: string | undefined;
	/** Counts changes: what was read before one may not be kept after it. */
	changes = 0;
	/** What they weigh, with those that were there. */
	bytes = PART_BYTES;
	/** No part has a greater one. */
	#newest = "";
	readonly #channels = new Map<string, Map<string, Part>>();

	get isEmpty(): boolean {
		return this.#channels.size === 0;
	}

	/** Forgets what is of another version. */
	renew(version: string | undefined): void {
		if (version === this.version) return;
		this.version = version;
		this.#channels.clear();
		this.bytes = PART_BYTES;
	}

	/** Goes along a path as far as it is known. Returns where it is not, unless it has come to its end. */
	follow(channel: string, start: Place | undefined, path: Part[]): Place | undefined {
		const known = this.#channels.get(channel);
		let place = start;
		while (place !== undefined) {
			const part = known?.get(place.id);
			if (part === undefined || part.newerId !== place.newerId) return place;
			path.push(part);
			place = part.next;
		}
		return undefined;
	}

	add(channel: string, part: Part): void {
		const parts = this.#channels.get(channel) ?? new Map<string, Part>();
		this.#channels.set(channel, parts.set(part.id, part));
		if (part.newest > this.#newest) this.#newest = part.newest;
		this.bytes += PART_BYTES;
		for (const { cell } of part.writes) this.bytes += typeof cell === "number" ? 0 : cell.bytes.length;
	}

	change(id: string): void {
		this.changes++;
		if (id > this.#newest) return;
		for (const parts of this.#channels.values())
			for (const part of parts.values()) if (id <= part.newest) parts.delete(part.id);
	}
}

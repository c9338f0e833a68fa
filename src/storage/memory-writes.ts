import { inGeneration } from "./new-write.ts";
import type { NewWrite, WriteRow } from "./storage.ts";

type Place = Pick<WriteRow, "taskId" | "generation" | "idx">;

/** The writes stored at one checkpoint. */
export class MemoryWrites {
	readonly #tasks = new Map<string, WriteRow[]>();

	get(place: Place): WriteRow | undefined {
		return this.#tasks.get(place.taskId)?.find((row) => isAt(row, place));
	}

	*[Symbol.iterator](): Generator<WriteRow> {
		for (const rows of this.#tasks.values()) yield* rows;
	}

	/** Adds a write, or puts it in the place of the one with its task, generation and index. */
	set(write: WriteRow): void {
		const rows = this.#tasks.get(write.taskId);
		if (rows === undefined) return void this.#tasks.set(write.taskId, [write]);
		const at = rows.findIndex((row) => isAt(row, write));
		if (at < 0) rows.push(write);
		else rows[at] = write;
	}

	delete(place: Place): void {
		const rows = this.#tasks.get(place.taskId);
		const at = rows?.findIndex((row) => isAt(row, place)) ?? -1;
		if (at >= 0) rows?.splice(at, 1);
	}

	/** Adds what one task wrote. Answers the values of the writes that were dropped. */
	put(writes: readonly NewWrite[]): unknown[] {
		const dropped: unknown[] = [];
		const before = [...(this.#tasks.get(writes[0]?.taskId ?? "") ?? [])];
		const next = before.reduce((most, write) => Math.max(most, write.generation + 1), 0);
		for (const write of writes) {
			const { conflict } = write;
			const row = inGeneration(write, conflict === "add" ? next : 0);
			const isKnown = conflict === "drop" && before.some(({ idx }) => idx === write.idx);
			const isTaken = isKnown || this.get(row) !== undefined;
			if (isTaken && conflict !== "replace") dropped.push(write.value);
			else this.set(row);
		}
		return dropped;
	}
}

function isAt(row: WriteRow, { generation, idx }: Place): boolean {
	return row.idx === idx && row.generation === generation;
}

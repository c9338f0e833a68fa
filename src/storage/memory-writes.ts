import { inGeneration } from "./new-write.ts";
import type { NewWrite, WriteRow } from "./storage.ts";

type Place = Pick<WriteRow, "taskId" | "generation" | "idx">;

/** With more rows than this, those of a task are looked up instead of looked for. */
const FEW_ROWS = 32;

/** The writes stored at one checkpoint. Most have one or two, and there may be many thousands of checkpoints. */
export class MemoryWrites {
	/** The rows of all tasks, or once they are more than a few, by task. */
	#rows: WriteRow[] | Map<string, WriteRow[]> = [];

	get(place: Place): WriteRow | undefined {
		return this.#ofTask(place.taskId).find((row) => isAt(row, place));
	}

	*[Symbol.iterator](): Generator<WriteRow> {
		if (Array.isArray(this.#rows)) yield* this.#rows;
		else for (const rows of this.#rows.values()) yield* rows;
	}

	/** Adds a write, or puts it in the place of the one with its task, generation and index. */
	set(write: WriteRow): void {
		const rows = this.#listOf(write.taskId);
		const at = rows.findIndex((row) => isAt(row, write));
		if (at < 0) rows.push(write);
		else rows[at] = write;
	}

	delete(place: Place): void {
		const rows = this.#listOf(place.taskId);
		const at = rows.findIndex((row) => isAt(row, place));
		if (at >= 0) rows.splice(at, 1);
	}

	/** Adds what one task wrote. Answers the values of the writes that were dropped. */
	put(writes: readonly NewWrite[]): unknown[] {
		const dropped: unknown[] = [];
		const before = this.#ofTask(writes[0]?.taskId ?? "");
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

	#ofTask(taskId: string): readonly WriteRow[] {
		if (!Array.isArray(this.#rows)) return [...(this.#rows.get(taskId) ?? [])];
		return this.#rows.filter((row) => row.taskId === taskId);
	}

	/** The list that rows of a task are in, or go to. */
	#listOf(taskId: string): WriteRow[] {
		if (Array.isArray(this.#rows)) {
			if (this.#rows.length < FEW_ROWS) return this.#rows;
			this.#rows = groupByTask(this.#rows);
		}
		const known = this.#rows.get(taskId);
		if (known !== undefined) return known;
		const added: WriteRow[] = [];
		this.#rows.set(taskId, added);
		return added;
	}
}

function groupByTask(rows: readonly WriteRow[]): Map<string, WriteRow[]> {
	const tasks = new Map<string, WriteRow[]>();
	for (const row of rows) {
		const known = tasks.get(row.taskId);
		if (known === undefined) tasks.set(row.taskId, [row]);
		else known.push(row);
	}
	return tasks;
}

function isAt(row: WriteRow, { taskId, generation, idx }: Place): boolean {
	return row.idx === idx && row.generation === generation && row.taskId === taskId;
}

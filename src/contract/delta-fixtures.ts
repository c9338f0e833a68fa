import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import type { Draft, Thread } from "./thread.ts";

/** A checkpoint as core puts it for a graph with the delta channel `log`: a version, a counter, but no value. */
export function deltaDraft(step: number, draft: Draft = {}): Draft {
	return {
		values: {},
		versions: { log: step + 1 },
		...draft,
		metadata: { step, counters_since_delta_snapshot: { log: [step, step] }, ...draft.metadata },
	};
}

/** The write that turns step `n` into step `n + 1`. */
export const deltaWrite = (n: number) => `write ${n}`;

/** The values of the writes of steps `from` up to, but not including, `to`. */
export function deltaWrites(from: number, to: number): string[] {
	return Array.from({ length: Math.max(0, to - from) }, (_, n) => deltaWrite(from + n));
}

/**
 * A chain of checkpoints with one write to `log` on each, and with a snapshot at some. The write on the last one is
 * pending. Gives the ids, the oldest first.
 */
export async function putDeltaChain(thread: Thread, length: number, snapshots: number[] = []): Promise<string[]> {
	const ids: string[] = [];
	for (let n = 0; n < length; n++) {
		const values = snapshots.includes(n) ? { log: new DeltaSnapshot(deltaWrites(0, n)) } : {};
		const id = await thread.put({ parent: ids.at(-1), ...deltaDraft(n, { values }) });
		await thread.write(id, [["log", deltaWrite(n)]], `task ${n}`);
		ids.push(id);
	}
	return ids;
}

import { type Checkpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import type { DeltaSaver } from "../../../src/index.ts";

/** What one writer was told that is stored. */
export interface Acknowledged {
	readonly threadId: string;
	/** Ids of checkpoints, oldest first. */
	readonly checkpoints: string[];
	/** Ids of checkpoints whose task's writes were stored. */
	readonly writes: string[];
}

const WORDS = "a message with enough words to be worth a patch of its own, ".repeat(4);

function messages(threadId: string, count: number): string[] {
	return Array.from({ length: count }, (_, n) => `${threadId} ${n}: ${WORDS}`);
}

/** Puts checkpoints and writes in a thread of its own until it is told to stop, and keeps account of what was stored. */
export async function write(saver: DeltaSaver, threadId: string, isOver: () => boolean): Promise<Acknowledged> {
	const done: Acknowledged = { threadId, checkpoints: [], writes: [] };
	for (let n = 0; !isOver(); n++) {
		const versions = { messages: n + 1, count: n + 1 };
		const checkpoint: Checkpoint = {
			v: 4,
			id: uuid6(n),
			ts: new Date().toISOString(),
			// Of a bounded length, so that the load stays what it is.
			channel_values: { messages: messages(threadId, 20 + (n % 20)), count: n },
			channel_versions: versions,
			versions_seen: {},
		};
		const parent = done.checkpoints.at(-1);
		const place = { thread_id: threadId, checkpoint_ns: "" };
		const config = { configurable: parent === undefined ? place : { ...place, checkpoint_id: parent } };
		const stored = await saver.put(config, checkpoint, { source: "loop", step: n, parents: {} }, versions);
		done.checkpoints.push(checkpoint.id);
		await saver.putWrites(
			stored,
			[
				["messages", `${threadId} ${n}: ${WORDS.repeat(4)}`],
				["count", n],
			],
			"task",
		);
		done.writes.push(checkpoint.id);
	}
	return done;
}

/** Everything that is wrong with what is stored, by the account of who stored it. */
export async function findFaults(saver: DeltaSaver, done: readonly Acknowledged[]): Promise<string[]> {
	const faults: string[] = [];
	for (const { threadId, checkpoints, writes } of done) {
		const found: string[] = [];
		for await (const tuple of saver.list({ configurable: { thread_id: threadId } })) {
			const { id, channel_values } = tuple.checkpoint;
			const n = checkpoints.indexOf(id);
			found.unshift(id);
			if (JSON.stringify(channel_values.messages) !== JSON.stringify(messages(threadId, 20 + (n % 20))))
				faults.push(`checkpoint ${n} of ${threadId} has other messages`);
			const expected = writes.includes(id) ? 2 : 0;
			if (tuple.pendingWrites?.length !== expected)
				faults.push(`checkpoint ${n} of ${threadId} has ${tuple.pendingWrites?.length} writes, not ${expected}`);
			if (n > 0 && tuple.parentConfig?.configurable?.checkpoint_id !== checkpoints[n - 1])
				faults.push(`checkpoint ${n} of ${threadId} has another parent`);
		}
		if (found.join() !== checkpoints.join())
			faults.push(`${threadId} has ${found.length} checkpoints, not the ${checkpoints.length} that were stored`);
		const thread = await saver.getThread(threadId);
		if (thread?.checkpoints !== checkpoints.length || thread.head !== checkpoints.at(-1))
			faults.push(`${threadId} is listed with ${thread?.checkpoints} checkpoints, of ${checkpoints.length}`);
	}
	const stats = await saver.stats();
	const total = done.reduce((sum, { writes }) => sum + 2 * writes.length, 0);
	// Writes that LangGraph does not see would still be in the history of a delta channel.
	if (stats.writes !== total) faults.push(`${stats.writes} writes are stored, not ${total}`);
	if (stats.channels.some(({ channel }) => channel === "")) faults.push("there are blobs that nothing names");
	return faults;
}

import assert from "node:assert/strict";
import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { collect, type Thread } from "./thread.ts";
import type { ContractSaver } from "./types.ts";

/** The promise that a call gives. Fails if the call throws instead, or gives something else. */
export function promised(call: () => PromiseLike<unknown>): Promise<unknown> {
	let answer: PromiseLike<unknown>;
	try {
		answer = call();
	} catch (error) {
		throw new assert.AssertionError({ message: `the call threw synchronously: ${error}` });
	}
	assert.equal(typeof answer?.then, "function", "the call gave no promise");
	return Promise.resolve(answer);
}

/** The call must give a promise that is rejected; with this code, if one is named. Gives the error. */
export async function assertRejects(call: () => PromiseLike<unknown>, ...codes: string[]): Promise<Error> {
	const error = await promised(call).then(
		() => assert.fail("the call was accepted"),
		(reason: unknown) => reason,
	);
	if (error instanceof assert.AssertionError) throw error;
	assert.ok(error instanceof Error, `rejected with something that is no Error: ${error}`);
	if (codes.length > 0) {
		const { code } = error as Error & { code?: string };
		assert.ok(codes.includes(String(code)), `expected code ${codes.join(" or ")}, got ${code}: ${error.message}`);
	}
	return error;
}

/** The parts of a tuple, so that an absent part equals an undefined one. */
export function partsOf(tuple: CheckpointTuple) {
	const { config, checkpoint, metadata, parentConfig, pendingWrites } = tuple;
	return { config, checkpoint, metadata, parentConfig, pendingWrites };
}

/** Everything that can be read of one checkpoint, without the thread's id and the link to the parent. */
export interface Reading {
	ns: string;
	id: string;
	checkpoint: CheckpointTuple["checkpoint"];
	metadata: CheckpointTuple["metadata"];
	pendingWrites: CheckpointTuple["pendingWrites"];
	parent: string | undefined;
	history: unknown;
}

/**
 * Reads every checkpoint of a thread in every way there is: list, getTuple, and the delta history of those channels
 * that have no value in it, which is when core asks for it.
 */
export async function readThread(saver: ContractSaver, threadId: string, channels: string[] = []): Promise<Reading[]> {
	const readings: Reading[] = [];
	for (const listed of await collect(saver.list({ configurable: { thread_id: threadId } }))) {
		const tuple = await saver.getTuple(listed.config);
		assert.ok(tuple, "a listed checkpoint can't be read");
		assert.deepEqual(partsOf(listed), partsOf(tuple));
		readings.push({
			ns: tuple.config.configurable?.checkpoint_ns,
			id: tuple.checkpoint.id,
			checkpoint: tuple.checkpoint,
			metadata: tuple.metadata,
			pendingWrites: tuple.pendingWrites,
			parent: tuple.parentConfig?.configurable?.checkpoint_id,
			history: await saver.getDeltaChannelHistory({
				config: tuple.config,
				channels: channels.filter((channel) => !Object.hasOwn(tuple.checkpoint.channel_values, channel)),
			}),
		});
	}
	return readings;
}

/** Every reading of `after` must be one of `before`; parents may have been relinked to survivors or dropped. */
export function assertSurvivorsUnchanged(before: Reading[], after: Reading[]): void {
	for (const { parent, ...rest } of after) {
		const { parent: _, ...expected } = mustFind(before, rest.ns, rest.id);
		assert.deepEqual(rest, expected);
		if (parent !== undefined) mustFind(after, rest.ns, parent);
	}
}

function mustFind(readings: Reading[], ns: string, id: string): Reading {
	const found = readings.find((reading) => reading.ns === ns && reading.id === id);
	assert.ok(found, `no checkpoint ${id} in namespace ${JSON.stringify(ns)}`);
	return found;
}

/** Puts and reads once more: whatever went wrong before, the saver still works. */
export async function assertStillWorks(thread: Thread): Promise<void> {
	const id = await thread.put({ values: { works: true } });
	await thread.write(id, [["works", "write"]]);
	assert.deepEqual(await thread.values(id), { works: true });
	assert.equal((await thread.pending(id)).length, 1);
}

import type { CheckpointKey, FoundCheckpoint, Storage, ThreadRow } from "./storage.ts";

const PAGE = 200;

/**
 * Every thread once. One that is updated meanwhile moves to the front of the list and may be missed there, so the list is
 * read again until it has no older thread that was not seen.
 */
export async function* allThreads(storage: Storage): AsyncGenerator<ThreadRow> {
	const started = Date.now();
	const seen = new Set<string>();
	for (let isDone = false; !isDone; ) {
		isDone = true;
		let after: ThreadRow | undefined;
		do {
			const page = await storage.listThreads(PAGE, after);
			for (const thread of page) {
				if (seen.has(thread.threadId)) continue;
				seen.add(thread.threadId);
				if (thread.createdAt <= started) isDone = false;
				yield thread;
			}
			after = page.at(-1);
		} while (after !== undefined);
	}
}

/** Families that have blobs, also such whose threads are all gone. */
export async function* allFamilies(storage: Storage): AsyncGenerator<number> {
	let after: number | undefined;
	do {
		const families = await storage.listFamilies(PAGE, after);
		yield* families;
		after = families.at(-1);
	} while (after !== undefined);
}

/** The rows of these checkpoints, as far as they are there. */
export async function* rowPages(
	storage: Storage,
	keys: readonly CheckpointKey[],
): AsyncGenerator<readonly FoundCheckpoint[]> {
	for (let i = 0; i < keys.length; i += PAGE) yield (await storage.read(keys.slice(i, i + PAGE), "rows")).checkpoints;
}

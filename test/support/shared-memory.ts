import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import type { Storage } from "../../src/storage/storage.ts";

/** A storage with some methods of its own, and all others of another. */
export function override(storage: Storage, methods: Partial<Storage>): Storage {
	return new Proxy(storage, {
		get(target, name: keyof Storage) {
			const method: unknown = methods[name] ?? target[name];
			return typeof method === "function" ? method.bind(target) : method;
		},
	});
}

/** Several storages over the same data in memory, as processes have them over a file: each knows what the others change. */
export class SharedMemory {
	readonly #data = new MemoryStorage();
	/** What was changed, all of it or a thread, and by which storage. */
	readonly #changes: { threadId: string | undefined; by: Storage }[] = [];

	open(): Storage {
		const data = this.#data;
		const note = (threadId?: string) => void this.#changes.push({ threadId, by: opened });
		const opened: Storage = override(data, {
			async put(batch) {
				await nextTurn();
				note(batch.threadId);
				return data.put(batch);
			},
			async remove(batch) {
				await nextTurn();
				note(batch.threadId);
				return data.remove(batch);
			},
			async removeThread(threadId) {
				note(threadId);
				return data.removeThread(threadId);
			},
			async clear() {
				note();
				return data.clear();
			},
			readPath: async (key, limit) => {
				await nextTurn();
				const { threadId } = key;
				const foreign = this.#changes.filter((one) => (one.threadId ?? threadId) === threadId && one.by !== opened);
				return { ...(await data.readPath(key, limit)), epoch: foreign.length };
			},
		});
		return opened;
	}
}

function nextTurn(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}

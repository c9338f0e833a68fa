import { uuid6 } from "@langchain/langgraph-checkpoint";
import { DeltaSaver } from "../../src/index.ts";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import { fileSource } from "../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import type { FoundCheckpoint, ScanQuery, ThreadRow } from "../../src/storage/storage.ts";

/** Lets somebody else act at a moment of a clean-up. */
class WatchedStorage extends MemoryStorage {
	/** Called once, after the threads of a family were looked up, or after a page of one was read. */
	afterFamily: (() => Promise<unknown>) | undefined;
	afterPage: (() => Promise<unknown>) | undefined;
	#isCollecting = false;

	override async getFamily(family: number): Promise<ThreadRow[]> {
		const threads = await super.getFamily(family);
		this.#isCollecting = true;
		const act = this.afterFamily;
		this.afterFamily = undefined;
		await act?.();
		return threads;
	}

	override async scan(query: ScanQuery): Promise<FoundCheckpoint[]> {
		const page = await super.scan(query);
		const act = this.#isCollecting ? this.afterPage : undefined;
		if (act !== undefined) this.afterPage = undefined;
		await act?.();
		return page;
	}
}

const config = (threadId: string, id?: string) => ({
	configurable: { thread_id: threadId, checkpoint_ns: "", ...(id && { checkpoint_id: id }) },
});
const large = Array.from({ length: 100 }, (_, n) => `item ${n} of a list that is not small`);
const small = ["short"];

/** @param n tells how new it is */
async function put(saver: DeltaSaver, n: number, parent: string | undefined, list: string[]): Promise<string> {
	const id = uuid6(n);
	const versions = { list: list === large ? 1 : 2 };
	const checkpoint = { v: 4, id, ts: "", channel_values: { list }, channel_versions: versions, versions_seen: {} };
	const metadata = { source: "loop" as const, step: n, parents: {} };
	// A child of the first checkpoint brings nothing new: it takes over the value that is stored.
	await saver.put(config("thread", parent), checkpoint, metadata, parent && list === large ? {} : versions);
	return id;
}

describe("A clean-up beside other work", () => {
	it("keeps the values of a copy that is made while it looks, and whose source is pruned then", async () => {
		const storage = new WatchedStorage();
		const [saver, other] = [new DeltaSaver(storage), new DeltaSaver(storage)];
		const first = await put(saver, 0, undefined, large);
		await put(saver, 1, first, small);
		storage.afterFamily = async () => {
			await other.copyThread("thread", "copy");
			await other.prune(["thread"]);
		};
		await saver.prune(["thread"], { keepLast: 2 });
		expect((await new DeltaSaver(storage).getTuple(config("copy", first)))?.checkpoint.channel_values).toEqual({
			list: large,
		});
	});

	it("keeps a value that a newer checkpoint takes over while it looks, and whose old one is removed then", async () => {
		const storage = new WatchedStorage();
		const [saver, other] = [new DeltaSaver(storage), new DeltaSaver(storage)];
		const first = await put(saver, 0, undefined, large);
		// More than one page, so that the oldest row is not read before the newest is added.
		for (let n = 1, last = first; n < 100; n++) last = await put(saver, n, last, small);
		let fork: string | undefined;
		storage.afterPage = async () => {
			fork = await put(other, 100, first, large);
			await other.prune(["thread"]);
		};
		await saver.prune(["thread"], { keepLast: 100 });
		expect((await new DeltaSaver(storage).getTuple(config("thread", fork)))?.checkpoint.channel_values).toEqual({
			list: large,
		});
	});

	it.each([
		["memory", () => new MemoryStorage()],
		["SQLite", () => new SqliteStorage(fileSource(":memory:"))],
	])(
		"does not look at the source of a copy that is pruned, unless the copy has gone its own way, in %s",
		async (_, open) => {
			const storage = open();
			const families = vi.spyOn(storage, "getFamily");
			const saver = new DeltaSaver(storage);
			const first = await put(saver, 0, undefined, large);
			const second = await put(saver, 1, first, small);
			await put(saver, 2, second, large);
			for (const name of ["one", "two"]) await saver.copyThread("thread", name);
			expect(await saver.prune(["one"])).toMatchObject({ checkpoints: 2, blobs: 0 });
			expect(families).not.toHaveBeenCalled();
			await saver.prune(["two"]);
			expect(families).not.toHaveBeenCalled();
			expect(await saver.prune(["thread"])).toMatchObject({ checkpoints: 2, blobs: 1 });
			expect(families).toHaveBeenCalled();
			for (const name of ["thread", "one", "two"])
				expect((await saver.getTuple(config(name)))?.checkpoint.channel_values).toEqual({ list: large });
			await saver.close();
		},
	);
});

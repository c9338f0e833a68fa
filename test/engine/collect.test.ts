import { uuid6 } from "@langchain/langgraph-checkpoint";
import { DeltaSaver } from "../../src/index.ts";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import { fileSource } from "../../src/storage/sqlite/source.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import type { Storage } from "../../src/storage/storage.ts";

/** Lets somebody else act at a moment of a clean-up. */
class WatchedStorage extends MemoryStorage {
	/** Called once, after a family was looked at. */
	afterFamily: (() => Promise<unknown>) | undefined;

	override async readFamily(family: number): ReturnType<MemoryStorage["readFamily"]> {
		const found = await super.readFamily(family);
		const act = this.afterFamily;
		this.afterFamily = undefined;
		await act?.();
		return found;
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

	it("keeps what a value is built on that is added while it looks, and whose parent is removed then", async () => {
		const storage = new WatchedStorage();
		const [saver, other] = [new DeltaSaver(storage), new DeltaSaver(storage)];
		const first = await put(saver, 0, undefined, large);
		const longer = [...large, "one more"];
		storage.afterFamily = async () => {
			await put(other, 1, first, longer);
			await other.prune(["thread"]);
		};
		await saver.prune(["thread"]);
		const reader = new DeltaSaver(storage);
		expect((await reader.getTuple(config("thread")))?.checkpoint.channel_values).toEqual({ list: longer });
		expect((await reader.stats()).blobs).toEqual({ whole: 1, patched: 1 });
	});

	it("keeps a value that a newer checkpoint takes over while it looks, and whose old one is removed then", async () => {
		const storage = new WatchedStorage();
		const [saver, other] = [new DeltaSaver(storage), new DeltaSaver(storage)];
		const first = await put(saver, 0, undefined, large);
		await put(saver, 1, first, small);
		let fork: string | undefined;
		storage.afterFamily = async () => {
			fork = await put(other, 2, first, large);
			await other.prune(["thread"]);
		};
		await saver.prune(["thread"], { keepLast: 2 });
		expect((await new DeltaSaver(storage).getTuple(config("thread", fork)))?.checkpoint.channel_values).toEqual({
			list: large,
		});
	});

	it.each<[string, () => Storage]>([
		["memory", () => new MemoryStorage()],
		["SQLite", () => new SqliteStorage(fileSource(":memory:"))],
	])("removes a value only once no copy has it any more, in %s", async (_, open) => {
		const saver = new DeltaSaver(open());
		const first = await put(saver, 0, undefined, large);
		const second = await put(saver, 1, first, small);
		await put(saver, 2, second, large);
		for (const name of ["one", "two"]) await saver.copyThread("thread", name);
		for (const name of ["one", "two"]) expect(await saver.prune([name])).toMatchObject({ checkpoints: 2, blobs: 0 });
		expect(await saver.prune(["thread"])).toMatchObject({ checkpoints: 2, blobs: 1 });
		for (const name of ["thread", "one", "two"])
			expect((await saver.getTuple(config(name)))?.checkpoint.channel_values).toEqual({ list: large });
		expect(await saver.verify()).toMatchObject({ unreachable: 0, damage: [] });
		await saver.close();
	});
});

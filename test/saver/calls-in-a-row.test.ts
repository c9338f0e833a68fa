import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { type DeltaSaver, MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";

const SAVERS: Record<string, () => DeltaSaver> = {
	MemorySaver: () => new MemorySaver(),
	SqliteSaver: () => new SqliteSaver(":memory:"),
};
const CALLS = 200;

describe.each(Object.entries(SAVERS))("many calls in a row on %s", (_, make) => {
	let saver: DeltaSaver;
	beforeEach(() => {
		saver = make();
	});
	afterEach(() => saver.close());

	/** How often the event loop has a turn meanwhile. */
	async function countTurns(work: () => Promise<void>): Promise<number> {
		let turns = 0;
		let next = setImmediate(function turn() {
			turns++;
			next = setImmediate(turn);
		});
		await work();
		clearImmediate(next);
		return turns;
	}

	async function put(count: number): Promise<object[]> {
		const stored: object[] = [];
		for (let n = 0; n < count; n++) {
			const config = { configurable: { thread_id: `thread ${n % 3}` } };
			stored.push(await saver.put(config, { ...emptyCheckpoint(), id: uuid6(n) }, {} as never, {}));
		}
		return stored;
	}

	it("leave turns to others", async () => {
		const stored: object[] = [];
		const puts = async () => {
			stored.push(...(await put(CALLS)));
		};
		expect(await countTurns(puts)).toBeGreaterThan(0);
		const writes = async () => {
			for (const config of stored) await saver.putWrites(config, [["channel", 1]], "task");
		};
		expect(await countTurns(writes)).toBeGreaterThan(0);
		const reads = async () => {
			for (const config of stored) await saver.getTuple(config);
		};
		expect(await countTurns(reads)).toBeGreaterThan(0);
		const list = async () => {
			for await (const tuple of saver.list({})) expect(tuple.checkpoint.v).toBe(emptyCheckpoint().v);
		};
		expect(await countTurns(list)).toBeGreaterThan(0);
	});
});

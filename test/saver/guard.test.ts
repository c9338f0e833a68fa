import { Annotation, StateGraph } from "@langchain/langgraph";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { ConcurrencyError, MemorySaver, type SaverOptions } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { stories } from "../graphs/index.ts";
import { raceOnGuard } from "../stress/guard-race.ts";
import { compare, inMemory } from "../support/graph-comparison.ts";
import { isAll, share } from "../support/share.ts";

const config = { configurable: { thread_id: "t" } };
const State = Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] }) });

/** Two nodes in a row; what a node waits for is up to the test. */
function twoSteps(checkpointer: MemorySaver | SqliteSaver, wait: (log: string[]) => Promise<unknown> = async () => {}) {
	const node =
		(name: string) =>
		async ({ log }: typeof State.State) => {
			await wait([...log, name]);
			return { log: [name] };
		};
	return new StateGraph(State)
		.addNode("first", node("first"))
		.addNode("second", node("second"))
		.addEdge("__start__", "first")
		.addEdge("first", "second")
		.compile({ checkpointer });
}

const savers: [string, (options: SaverOptions) => MemorySaver | SqliteSaver][] = [
	["MemorySaver", (options) => new MemorySaver(options)],
	["SqliteSaver", (options) => new SqliteSaver(":memory:", options)],
];

describe.each(savers)("onConflict: reject on %s", (_, open) => {
	it("refuses the run that comes too late, and what the other stored stays", async () => {
		const saver = open({ onConflict: "reject" });
		let release = () => {};
		const gate = new Promise<void>((resolve) => {
			release = resolve;
		});
		const slow = twoSteps(saver, (log) => (log.at(-1) === "first" ? gate : Promise.resolve()));
		const late = slow.invoke({ log: ["late"] }, { ...config, durability: "sync" });
		late.catch(() => {});
		for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
		await twoSteps(saver).invoke({ log: ["other"] }, { ...config, durability: "sync" });
		release();
		const error = await late.catch((reason) => reason);
		expect(error).toBeInstanceOf(ConcurrencyError);
		expect(error).toMatchObject({ code: "CONFLICT", name: "ConcurrencyError" });
		const { values } = await twoSteps(saver).getState(config);
		expect(values.log).toEqual(["late", "other", "first", "second"]);
		expect(error.headId).toBe((await saver.getTuple(config))?.checkpoint.id);
		const again = await twoSteps(saver).invoke({ log: ["again"] }, config);
		expect(again.log.slice(4)).toEqual(["again", "first", "second"]);
	});

	it("does not take a checkpoint for chosen from the past that was the newest when it was asked for", async () => {
		// Now and then a call lets the event loop have a turn, in which another run may come first.
		for (let callsBefore = 0; callsBefore < (isAll ? 64 : 16); callsBefore++) {
			const saver = open({ onConflict: "reject" });
			const put = (at: object) => saver.put(at, emptyCheckpoint(), { source: "loop", step: 1, parents: {} }, {});
			const newest = await put({ configurable: { thread_id: "t", checkpoint_ns: "" } });
			for (let n = 0; n < callsBefore; n++) await saver.getTuple(config);
			const other = new Promise<unknown>((resolve) => setImmediate(() => resolve(put(newest))));
			const mine = { ...newest, metadata: {} };
			await saver.getTuple(mine);
			await other;
			await expect(put(mine)).rejects.toBeInstanceOf(ConcurrencyError);
			await saver.close();
		}
	});

	it("refuses a put by hand whose parent is old, and takes one that says it is a fork", async () => {
		const saver = open({ onConflict: "reject" });
		const put = (parent: string | undefined, source: "loop" | "fork") => {
			const at = { configurable: { thread_id: "t", checkpoint_ns: "", checkpoint_id: parent } };
			return saver.put(at, emptyCheckpoint(), { source, step: 1, parents: {} }, {});
		};
		const first = (await put(undefined, "loop")).configurable?.checkpoint_id;
		const second = (await put(first, "loop")).configurable?.checkpoint_id;
		await expect(put(first, "loop")).rejects.toMatchObject({ code: "CONFLICT", parentId: first, headId: second });
		await expect(put(undefined, "loop")).rejects.toMatchObject({ code: "CONFLICT", parentId: undefined });
		await put(first, "fork");
	});

	it("refuses a state update of a thread that went on since it was read", async () => {
		const saver = open({ onConflict: "reject" });
		const graph = twoSteps(saver);
		await graph.invoke({ log: ["in"] }, config);
		const updates = await Promise.allSettled([1, 2].map((n) => graph.updateState(config, { log: [`update ${n}`] })));
		expect(updates.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
	});

	it("lets everybody who names a checkpoint of the past start from there", async () => {
		const saver = open({ onConflict: "reject" });
		const graph = twoSteps(saver);
		await graph.invoke({ log: ["in"] }, config);
		const history = [];
		for await (const state of graph.getStateHistory(config)) history.push(state);
		const past = history.find(({ next }) => next[0] === "second")?.config ?? {};
		expect((await graph.invoke(null, past)).log).toEqual(["in", "first", "second"]);
		expect((await graph.invoke({ log: ["new"] }, past)).log).toEqual(["in", "first", "new", "first", "second"]);
		const updated = await graph.updateState(past, { log: ["edited"] });
		expect((await graph.invoke(null, updated)).log).toEqual(["in", "first", "edited", "second"]);
		const count = history.length;
		let now = 0;
		for await (const _ of graph.getStateHistory(config)) now++;
		expect(now).toBeGreaterThan(count + 5);
	});

	it("does not refuse those who name the newest checkpoint, once", async () => {
		const saver = open({ onConflict: "reject" });
		const graph = twoSteps(saver);
		await graph.invoke({ log: ["in"] }, config);
		const newest = (await graph.getState(config)).config;
		const both = await Promise.allSettled([1, 2].map((n) => graph.updateState(newest, { log: [`update ${n}`] })));
		expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
	});
});

describe("onConflict", () => {
	it("is fork unless told otherwise: everybody gets a branch", async () => {
		const graph = twoSteps(new MemorySaver());
		await graph.invoke({ log: ["in"] }, config);
		await Promise.all([1, 2].map((n) => graph.updateState(config, { log: [`update ${n}`] })));
	});

	it.each(["merge", true, null])("can't be %j", (onConflict) => {
		const options = { onConflict } as never;
		expect(() => new MemorySaver(options)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
		expect(() => new SqliteSaver(":memory:", options)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
	});

	const guarded = inMemory("a guarded saver", () => new MemorySaver({ onConflict: "reject" }));
	const travels = ["forks", "updates", "subgraphs", "branches", "deltas"].flatMap((about) => stories[about] ?? []);
	const cases = share(travels, 3).flatMap((story) =>
		story.durabilities.slice(-1).map((durability) => ({ story, durability })),
	);
	it.each(cases)(
		"reject changes nothing where nobody races: $story.name ($durability)",
		async ({ story, durability }) => {
			const { unexpected, unmet, faults } = await compare("runs", story, durability, guarded);
			expect(unexpected).toEqual([]);
			expect(unmet).toEqual([]);
			expect(faults).toEqual([]);
		},
	);

	it("reject leaves one winner per parent when processes race", async () => {
		const { taken, refused } = await raceOnGuard(4, 60);
		expect(taken).toBeGreaterThanOrEqual(60);
		expect(refused).toBeGreaterThan(0);
	});
});

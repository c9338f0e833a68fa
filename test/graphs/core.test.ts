import { Annotation, DeltaChannel, START, StateGraph } from "@langchain/langgraph";
import type { PendingWrite } from "@langchain/langgraph-checkpoint";
import { StateGraph as NextStateGraph } from "langgraph-next";
import { MemorySaver } from "../../src/index.ts";
import { core } from "../support/core.ts";

it(`runs on LangGraph ${core}`, () => {
	expect(StateGraph === (NextStateGraph as unknown)).toBe(core === "1.7");
});

/** Refuses what one node writes. */
class RefusingSaver extends MemorySaver {
	refuses = "b";
	override async putWrites(...call: Parameters<MemorySaver["putWrites"]>): Promise<void> {
		const isRefused = (call[1] as PendingWrite[]).some(([, value]) => JSON.stringify(value) === `["${this.refuses}"]`);
		if (isRefused) throw new Error("refused");
		await super.putWrites(...call);
	}
}

/** Until 1.5, the next checkpoint was put without what could not be stored. */
if (core === "1.7")
	it("a write that can't be stored ends the run, and the thread goes on from before it", async () => {
		const saver = new RefusingSaver();
		const log = () => new DeltaChannel<string[], string[]>((all, writes) => [...all, ...writes.flat()], {});
		const graph = new StateGraph(Annotation.Root({ log: log as any }))
			.addNode("a", () => ({ log: ["a"] }))
			.addNode("b", () => ({ log: ["b"] }))
			.addNode("c", () => ({ log: ["c"] }))
			.addEdge(START, "a")
			.addEdge("a", "b")
			.addEdge("b", "c")
			.compile({ checkpointer: saver });
		const config = { configurable: { thread_id: "t" }, durability: "sync" as const };
		await expect(graph.invoke({ log: ["in"] }, config)).rejects.toThrow("refused");
		const stored = async () => ((await graph.getState(config)).values as { log: string[] }).log;
		expect(await stored()).toEqual(["in", "a"]);
		saver.refuses = "nothing";
		await graph.invoke(null, config);
		expect(await stored()).toEqual(["in", "a", "b", "c"]);
	});

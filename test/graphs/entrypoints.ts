import { Command, entrypoint, getPreviousState, interrupt, START, StateGraph, task } from "@langchain/langgraph";
import { LogState } from "../support/graph-log.ts";
import { scenario, thread } from "../support/graph-scenario.ts";

export default [
	scenario("an entrypoint runs tasks one after the other and side by side", async (bench) => {
		const double = task("double", async (n: number) => n * 2);
		const describe = task("describe", async (n: number, unit: string) => ({ text: `${n} ${unit}`, n }));
		const graph = entrypoint({ name: "work", checkpointer: bench.saver }, async (numbers: number[]) => {
			const doubled = await Promise.all(numbers.map((n) => double(n)));
			return await describe(
				doubled.reduce((sum, n) => sum + n, 0),
				"apples",
			);
		});
		for (const numbers of [[1, 2, 3], [4], []]) await bench.run(graph, numbers, thread("t"));
		await bench.survey(graph, thread("t"));
	}),

	scenario("an entrypoint goes on from what it returned or saved before", async (bench) => {
		const counting = entrypoint({ name: "counting", checkpointer: bench.saver }, async (n: number) => {
			return (getPreviousState<number>() ?? 0) + n;
		});
		for (const n of [1, 2, 3]) await bench.run(counting, n, thread("returned"));
		await bench.survey(counting, thread("returned"));
		const saving = entrypoint({ name: "saving", checkpointer: bench.saver }, async (word: string) => {
			const before = getPreviousState<string[]>() ?? [];
			return entrypoint.final({ value: before.length, save: [...before, word] });
		});
		for (const word of ["a", "b", "c"]) await bench.run(saving, word, thread("saved"));
		await bench.survey(saving, thread("saved"));
	}),

	scenario("an entrypoint asks between two tasks, and finished tasks are not run again", async (bench) => {
		const runs: string[] = [];
		const write = task("write", async (topic: string) => {
			runs.push(`write ${topic}`);
			return `essay on ${topic}`;
		});
		const publish = task("publish", async (essay: string) => {
			runs.push(`publish ${essay}`);
			return { published: essay };
		});
		const graph = entrypoint({ name: "essays", checkpointer: bench.saver }, async (topic: string) => {
			const essay = await write(topic);
			const review = interrupt<unknown, string>({ essay, action: "review" });
			const title = interrupt<unknown, string>("title?");
			return { ...(await publish(`${title}: ${essay}`)), review };
		});
		await bench.run(graph, "cats", thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, new Command({ resume: "good" }), thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, new Command({ resume: "On cats" }), thread("t"));
		bench.note("runs", runs);
		await bench.survey(graph, thread("t"));
	}),

	scenario("a task fails, and the run goes on from what was done before", async (bench) => {
		const runs: string[] = [];
		const steady = task("steady", async (n: number) => {
			runs.push("steady");
			return n + 1;
		});
		const shaky = task("shaky", async (n: number) => {
			runs.push("shaky");
			if (runs.filter((run) => run === "shaky").length < 2) throw new Error("not yet");
			return n * 10;
		});
		const retried = task(
			{ name: "retried", retry: { maxAttempts: 3, initialInterval: 1, jitter: false, logWarning: false } },
			async (n: number) => {
				runs.push("retried");
				if (runs.filter((run) => run === "retried").length < 3) throw new Error("try again");
				return n * 100;
			},
		);
		const graph = entrypoint({ name: "work", checkpointer: bench.saver }, async (n: number) => {
			return (await retried(await shaky(await steady(n)))) + 1;
		});
		await bench.run(graph, 1, thread("t"));
		await bench.peek(graph, thread("t"));
		await bench.run(graph, null, thread("t"));
		bench.note("runs", runs);
		await bench.survey(graph, thread("t"));
	}),

	scenario("a node of a graph calls tasks and an entrypoint", async (bench) => {
		const shout = task("shout", async (text: string) => text.toUpperCase());
		const inner = entrypoint("inner", async (words: string[]) => {
			const shouted = await Promise.all(words.map((word) => shout(word)));
			return [...shouted, interrupt<string, string>("enough?")];
		});
		const graph = new StateGraph(LogState)
			.addNode("call", async ({ log }, config) => ({ log: await inner.invoke(log, config), last: await shout("done") }))
			.addEdge(START, "call")
			.compile({ checkpointer: bench.saver });
		await bench.run(graph, { log: ["a", "b"] }, thread("t"));
		await bench.dump(thread("t"));
		await bench.run(graph, new Command({ resume: "yes" }), thread("t"));
		await bench.survey(graph, thread("t"));
	}),
];

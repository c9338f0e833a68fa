import * as current from "@langchain/langgraph";
import { type BaseCheckpointSaver, Command, MemorySaver as OfficialMemorySaver } from "@langchain/langgraph";
import * as next from "langgraph-next";
import { describe, expect, it, vi } from "vitest";
import { DeltaSaver } from "../../src/index.ts";
import { PostgresSaver } from "../../src/postgres.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { MemoryStorage } from "../../src/storage/memory/storage.ts";
import { core } from "../support/core.ts";
import { mulberry32, randomScenario } from "../support/delta-random.ts";
import { askTwice, line, nested, scenarios } from "../support/delta-scenarios.ts";
import { differences, type LangGraph, World } from "../support/delta-world.ts";
import { Reference } from "../support/graph-reference.ts";
import { CheckedSaver, ReadingElsewhereSaver } from "../support/history-readers.ts";
import { OfficialSaver } from "../support/official-saver.ts";
import { OvertakingStorage } from "../support/overtaking-storage.ts";
import { emptySchema } from "../support/postgres.ts";
import { share } from "../support/share.ts";

/** Compiled. */
type Graph = ReturnType<World["compile"]>;
type Opened = BaseCheckpointSaver & { close?(): Promise<void> };

async function openPostgres(): Promise<Opened> {
	const { pool, schema, leave } = await emptySchema();
	const saver = new PostgresSaver(pool, { schema });
	return Object.assign(saver, { close: () => PostgresSaver.prototype.close.call(saver).then(leave) });
}

interface Candidate {
	readonly name: string;
	readonly create: () => Opened | Promise<Opened>;
	/** Plays every second scenario if it is 2, and so on; all of them unless told. */
	readonly every?: number;
}

/** A few: `npm run fuzz` has more. */
const RANDOM_HISTORIES = 2;
const MIXED_HISTORIES = 4;

const randomHistories = (["sync", "async", "exit"] as const).flatMap((durability) =>
	Array.from({ length: RANDOM_HISTORIES }, (_, i) => ({
		durability,
		seed: i + 1,
		scenario: randomScenario(i + 1, 6, durability),
	})),
);

const describeOn14 = (name: string, body: () => void) => core === "1.4" && describe(name, body);

const savers: readonly Candidate[] = [
	{ name: "MemorySaver, compared with one that remembers nothing", create: () => new CheckedSaver() },
	{ name: "SqliteSaver", create: () => new SqliteSaver(":memory:"), every: 2 },
	{
		name: "one whose calls overtake each other",
		create: () => new DeltaSaver(new OvertakingStorage(mulberry32(1))),
		every: 2,
	},
	{
		name: "SqliteSaver with encryption, read through another connection",
		create: () => new ReadingElsewhereSaver({ encryption: { key: new Uint8Array(32).fill(1) } }),
		every: 4,
	},
	{ name: "PostgresSaver", create: openPostgres, every: 4 },
];

describe.each(savers)("A DeltaChannel on $name", ({ create, every = 1 }) => {
	const play = async (scenario: (typeof scenarios)[number]) => {
		const saver = await create();
		const found = await differences(scenario, saver);
		await saver.close?.();
		return found;
	};

	for (const scenario of share(scenarios, every)) {
		const { name, kind, impossible, refused } = scenario;
		if (refused?.core === core)
			it(`is not asked after ${name} (${kind}): ${refused.reason}`, async () => {
				await expect(scenario.play(new World(new Reference(), false))).rejects.toThrow();
			});
		else if (impossible?.core === core)
			it(`differs from a reducer after ${name} (${kind}): ${impossible.reason}`, async () => {
				const found = await play(scenario);
				expect(found.map(({ is }) => is)).toEqual(impossible.answer);
			});
		else
			it(`equals a reducer after ${name} (${kind})`, async () => {
				expect(await play(scenario)).toEqual([]);
			});
	}

	it.each(randomHistories)(
		"equals a reducer after a random history in $durability durability, seed $seed",
		async ({ scenario }) => {
			expect(await play(scenario)).toEqual([]);
		},
	);
});

describe("A DeltaChannel on the official MemorySaver", () => {
	const isNext = core === "1.7";
	for (const scenario of scenarios) {
		const expected = isNext ? (scenario.officialNext ?? "right") : scenario.official;
		if (expected === "endless" || scenario.refused?.core === core) continue;
		const verb = expected === "right" ? "equals" : "differs from";
		it(`${verb} a reducer after ${scenario.name} (${scenario.kind})`, async () => {
			const found = await differences(scenario, isNext ? new OfficialSaver() : new OfficialMemorySaver());
			expect(found.length > 0 ? "wrong" : "right").toBe(expected);
		});
	}

	if (!isNext)
		it("has no end to its walk once exit durability has put a checkpoint as its own parent", async () => {
			const world = new World(new OfficialMemorySaver(), true);
			const graph = askTwice(world);
			const config = { ...world.config, durability: "exit" };
			await graph.invoke({ log: ["in"] }, config);
			await graph.invoke(new Command({ resume: "1" }), config);
			const head = await world.saver.getTuple(world.config);
			expect(head?.parentConfig?.configurable?.checkpoint_id).toBe(head?.checkpoint.id);
			const endless = scenarios.filter(({ official }) => official === "endless");
			expect(new Set(endless.map(({ kind }) => kind))).toEqual(new Set(["exit durability, interrupted"]));
		});
});

/** Random histories that were read wrong once. */
const pinned = [
	...[21, 27, 77, 1420, 1636, 1637, 1722, 5119, 101966, 958733607, 960367630].map((seed) => ({
		seed,
		durability: "exit" as const,
	})),
	{ seed: 259, durability: "async" as const },
	...[1420, 3082, 3460].map((seed) => ({ seed, durability: undefined })),
];
const pinnedMixed = [
	...[30, 36, 61, 109, 143].map((seed) => ({ seed, durability: "exit" as const })),
	{ seed: 150, durability: undefined },
];

describe("A DeltaChannel", () => {
	it.each(pinned)(
		"equals a reducer after random history $seed in $durability durability",
		async ({ seed, durability }) => {
			expect(await differences(randomScenario(seed, 3 + (seed % 8), durability), new CheckedSaver())).toEqual([]);
		},
	);
});

describe("A thread that is continued by a process whose clock is an hour behind", () => {
	/** start → (done, ask), where `ask` interrupts while `done` is done */
	const fork = (world: World) => {
		const { END, START } = current;
		const builder = world.builder().addNode("done", world.say("done")).addNode("ask", world.ask("ask"));
		for (const node of ["done", "ask"]) builder.addEdge(START, node).addEdge(node, END);
		return world.compile(builder);
	};

	it.each([
		["is resumed", async (graph: Graph, config: object) => graph.invoke(new Command({ resume: "yes" }), config)],
		["is updated", async (graph: Graph, config: object) => graph.updateState(config, { log: ["edit"] }, "ask")],
		["is ended", async (graph: Graph, config: object) => graph.updateState(config, null, current.END)],
		[
			"is given a command",
			async (graph: Graph, config: object) => graph.invoke(new Command({ update: { log: ["more"] } }), config),
		],
	])("%s, and has all that was pending", async (_, goOn) => {
		const play = async (delta: boolean) => {
			const storage = new MemoryStorage();
			const open = () => (delta ? new DeltaSaver(storage) : reference);
			const reference = new Reference();
			const ahead = vi.spyOn(Date, "now").mockImplementation(() => performance.timeOrigin + 3_600_000);
			await fork(new World(open(), delta)).invoke({ log: ["in"] }, { configurable: { thread_id: "thread" } });
			ahead.mockRestore();
			const world = new World(open(), delta);
			const graph = fork(world);
			await goOn(graph, world.config);
			return (await graph.getState(world.config)).values.log.toSorted();
		};
		expect(await play(true)).toEqual(await play(false));
	});
});

// The two take turns in one process, so it does not matter which of them `core` is.
describeOn14("A thread that LangGraph 1.4 and 1.7 write in turns", () => {
	const cores = [current, next as unknown as LangGraph];
	const durabilities = ["sync", "async", "exit", undefined] as const;
	const cases = durabilities.flatMap((durability) =>
		Array.from({ length: MIXED_HISTORIES }, (_, i) => ({ durability, seed: i + 1 })),
	);

	it.each(pinnedMixed)(
		"reads right after random history $seed in $durability durability",
		async ({ seed, durability }) => {
			const scenario = randomScenario(seed, 3 + (seed % 8), durability, cores);
			expect(await differences(scenario, new CheckedSaver())).toEqual([]);
		},
	);

	it.each(cases)("reads right from both in $durability durability, seed $seed", async ({ durability, seed }) => {
		const scenario = randomScenario(seed, 8, durability, cores);
		for (const saver of [new CheckedSaver(), new SqliteSaver(":memory:")]) {
			expect(await differences(scenario, saver)).toEqual([]);
			await saver.close();
		}
	});
});

describeOn14("What no saver can know under LangGraph 1.4", () => {
	it("the value of an update to a thread that has nothing is in no call", async () => {
		const saver = new RecordingSaver();
		const world = new World(saver, true);
		const graph = line(world);
		await graph.updateState(world.config, { log: ["secret"] }, "a");
		expect(saver.calls.map(({ method }) => method)).toEqual(["getTuple", "getDeltaChannelHistory", "put"]);
		expect(JSON.stringify(saver.calls)).not.toContain("secret");
		await graph.updateState(world.config, { log: ["secret"] }, "a");
		expect(JSON.stringify(saver.calls)).toContain("secret");
	});

	it("a subgraph's state that is read with its parent's is not asked for", async () => {
		const saver = new RecordingSaver();
		const world = new World(saver, true);
		const graph = nested(world);
		await graph.invoke({ log: ["in"] }, world.config);
		saver.calls.length = 0;
		await graph.getState(world.config, { subgraphs: true });
		const asked = (method: string) =>
			saver.calls.filter((call) => call.method === method).map((call) => (call.ns ? "subgraph" : "graph"));
		expect(asked("getTuple")).toEqual(["graph", "subgraph"]);
		expect(asked("getDeltaChannelHistory")).toEqual(["graph"]);
	});

	it("updates with and without an id over a pending command make the same calls", async () => {
		const record = async (byId: boolean) => {
			const saver = new RecordingSaver();
			const world = new World(saver, true);
			const graph = line(world);
			await graph.invoke({ log: ["in"] }, world.config);
			await graph.invoke(new Command({ resume: "nothing", update: { log: ["pending"] } }), world.config);
			const { config } = await graph.getState(world.config);
			saver.calls.length = 0;
			await graph.updateState(byId ? config : world.config, { log: ["edit"] }, "b");
			const written = saver.calls.filter(({ method }) => method.startsWith("put"));
			const ids = /"[0-9a-f]{8}-[0-9a-f-]{27}"/g;
			return JSON.stringify(written)
				.replace(ids, '"id"')
				.replace(/"ts":"[^"]*"/g, "");
		};
		expect(await record(true)).toBe(await record(false));
	});
});

/** Writes down what it is told. */
class RecordingSaver extends OfficialMemorySaver {
	readonly calls: { method: string; ns: string; rest: unknown[] }[] = [];

	override getTuple(...args: Parameters<OfficialMemorySaver["getTuple"]>) {
		this.#record("getTuple", args[0], []);
		return super.getTuple(...args);
	}

	override put(...args: Parameters<OfficialMemorySaver["put"]>) {
		this.#record("put", args[0], args.slice(1));
		return super.put(...args);
	}

	override putWrites(...args: Parameters<OfficialMemorySaver["putWrites"]>) {
		this.#record("putWrites", args[0], args.slice(1));
		return super.putWrites(...args);
	}

	override getDeltaChannelHistory(...args: Parameters<OfficialMemorySaver["getDeltaChannelHistory"]>) {
		this.#record("getDeltaChannelHistory", args[0].config, args[0].channels);
		return super.getDeltaChannelHistory(...args);
	}

	#record(method: string, { configurable }: { configurable?: Record<string, unknown> }, rest: unknown[]): void {
		const { thread_id, checkpoint_ns = "", checkpoint_id } = configurable ?? {};
		const copy = structuredClone([{ thread_id, checkpoint_ns, checkpoint_id }, ...rest]);
		this.calls.push({ method, ns: String(checkpoint_ns), rest: copy });
	}
}

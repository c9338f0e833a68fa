import { type BaseCheckpointSaver, Command, MemorySaver as OfficialMemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { DeltaSaver } from "../src/index.ts";
import { SqliteSaver } from "../src/sqlite.ts";
import { mulberry32, randomScenario } from "./support/delta-random.ts";
import { askTwice, line, nested, scenarios } from "./support/delta-scenarios.ts";
import { differences, World } from "./support/delta-world.ts";
import { CheckedSaver, ReadingElsewhereSaver } from "./support/history-readers.ts";
import { OvertakingStorage } from "./support/overtaking-storage.ts";

interface Candidate {
	readonly name: string;
	readonly create: () => BaseCheckpointSaver & { close?(): Promise<void> };
	/** Its calls take effect after a while, and not in the order in which they were made. */
	readonly overtaking?: boolean;
}

/** A few: `npm run fuzz` has more. */
const RANDOM_HISTORIES = 8;

const savers: readonly Candidate[] = [
	{ name: "MemorySaver, compared with one that remembers nothing", create: () => new CheckedSaver() },
	{ name: "SqliteSaver", create: () => new SqliteSaver(":memory:") },
	{
		name: "one whose calls overtake each other",
		create: () => new DeltaSaver(new OvertakingStorage(mulberry32(1))),
		overtaking: true,
	},
	{ name: "SqliteSaver, read through another connection", create: () => new ReadingElsewhereSaver() },
];

describe.each(savers)("A DeltaChannel on $name", ({ create, overtaking }) => {
	const play = async (scenario: (typeof scenarios)[number]) => {
		const saver = create();
		const found = await differences(scenario, saver);
		await saver.close?.();
		return found;
	};

	for (const scenario of scenarios) {
		const { name, kind, impossible } = scenario;
		if (overtaking && scenario.timed) continue;
		if (impossible)
			it(`differs from a reducer after ${name} (${kind}): ${impossible.reason}`, async () => {
				const found = await play(scenario);
				expect(found.map(({ is }) => is)).toEqual(impossible.answer);
			});
		else
			it(`equals a reducer after ${name} (${kind})`, async () => {
				expect(await play(scenario)).toEqual([]);
			});
	}

	it.each(Array.from({ length: RANDOM_HISTORIES }, (_, i) => i + 1))(
		"equals a reducer after a random history, seed %i",
		async (seed) => {
			expect(await play(randomScenario(seed, 5))).toEqual([]);
		},
	);
});

describe("A DeltaChannel on the official MemorySaver", () => {
	for (const scenario of scenarios) {
		if (scenario.official === "endless") continue;
		const verb = scenario.official === "right" ? "equals" : "differs from";
		it(`${verb} a reducer after ${scenario.name} (${scenario.kind})`, async () => {
			const found = await differences(scenario, new OfficialMemorySaver());
			expect(found.length > 0 ? "wrong" : "right").toBe(scenario.official);
		});
	}

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

describe("What no saver can know", () => {
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

import { join } from "node:path";
import type { Client } from "@langchain/langgraph-sdk";
import { SqliteSaver } from "../../src/sqlite.ts";
import { root } from "../support/run-node.ts";
import { sqlite } from "./support/backends.ts";
import { OfficialServer } from "./support/official-server.ts";
import { clientFor, startServer } from "./support/server.ts";
import { type Answer, haveSession, normalize, type Transcript, withoutExtras } from "./support/session.ts";

/** A graph whose making turns the bridge on: until somebody asks for it, the server is as it is. */
const bridged = `
	import { useSaverInDev } from "${join(root, "src/langgraph-dev.ts")}";
	import { SqliteSaver } from "${join(root, "src/sqlite.ts")}";
	import { review } from "./graphs.ts";
	export const bridged = async () => {
		await useSaverInDev(new SqliteSaver("checkpoints.db"));
		return review;
	};
`;

let official: OfficialServer;
beforeAll(async () => {
	official = await OfficialServer.start({ "bridged.ts": bridged }, { bridged: "./bridged.ts:bridged" });
});
afterAll(() => official.stop());

interface Difference {
	/** What is wrong with the official server's answer. */
	why: string;
	/** What ours has to be, at least. */
	ours: { status?: number; body?: unknown };
}

const unsaid = "Says of a status or of values only what its last run came to, not what the thread's state is.";
const emptyInterrupts = "Lists tasks that ask for nothing among the interrupts.";
const inPlainWords = "Tells what is wrong with a field in the words of its validator, as JSON.";
const someGraphs = "Knows the graph of some states only.";

/** Where the official server is wrong. Everything else must be the same. */
const differences: Record<string, Difference> = {
	info: { why: "Streams no namespaces of a choice.", ours: { body: { flags: { stream_namespaces: true } } } },
	"make thread with any id": { why: "Takes no ids but UUIDs.", ours: { status: 200, body: { thread_id: "any id" } } },
	"copy thread": { why: unsaid, ours: { body: { status: "idle", values: { name: "w" } } } },
	"make thread with states": { why: unsaid, ours: { body: { status: "interrupted" } } },
	"state of thread with states": { why: someGraphs, ours: { body: { metadata: { graph_id: "work" } } } },
	"interrupt before a node: thread": {
		why: emptyInterrupts,
		ours: { body: { status: "interrupted", interrupts: {} } },
	},
	"time: before, as a config": {
		why: "Does not take the config that the client's types ask for.",
		ours: { status: 200, body: [{ next: ["first"] }, { next: ["__start__"] }] },
	},
	"time: run from the head": {
		why: "Starts from the checkpoint of an earlier request again, instead of from the head.",
		ours: { body: { log: ["one started", "one worked", "one done", "two started", "two worked", "two done"] } },
	},
	"fork: state to run again": { why: someGraphs, ours: { body: { metadata: { graph_id: "work" } } } },
	"fork: as a node that is not there": {
		why: "Takes a client's mistake for one of its own.",
		ours: { status: 422, body: 'InvalidUpdateError: Node "nobody" does not exist' },
	},
	"nested: run": { why: "Streams checkpoints that nobody asked for.", ours: { status: 200 } },
	"nested: thread": {
		why: "Takes the values of a subgraph for those of the thread.",
		ours: { body: { values: { log: ["before"] } } },
	},
	"mode checkpoints": {
		why: "Leaves out config and tasks, which the client's types have.",
		ours: { body: [{}, { event: "checkpoints", data: { config: {}, tasks: [{}] } }, {}, {}] },
	},
	"failure: thread": { why: emptyInterrupts, ours: { body: { status: "error", interrupts: {} } } },
	"failure: wait": {
		why: "Wraps an error into another, as JSON in its message.",
		ours: { body: { __error__: { error: "RangeError", message: "broken" } } },
	},
	"failure: unknown thread": {
		why: "Says of a thread that is not there that it is busy.",
		ours: { status: 404, body: "Thread with ID id 1 not found" },
	},
	"failure: wrong field": { why: inPlainWords, ours: { status: 400 } },
	"cancel: thread after": {
		why: unsaid,
		ours: { body: { status: "interrupted", values: { log: ["stuck started"] } } },
	},
	"stateless: interrupt": {
		why: "Runs a graph that asks a person without anything that could hold the question.",
		ours: { body: { __interrupt__: [{ value: { question: 'Publish "On t."?' } }] } },
	},
};

/** Depends on how far the run has come when the request is there. */
const unsteady = ["busy: thread"];

describe("The same session with langgraphjs dev and with our server", () => {
	let theirs: Transcript;
	let ours: Transcript;
	beforeAll(async () => {
		const { url } = await startServer(sqlite);
		ours = await haveSession(url);
		theirs = await haveSession(official.url);
	});

	/** Both answers, comparable. */
	function compare(name: string): { ours: Answer; theirs: Answer } {
		const normalized = normalize(theirs[name] as Answer);
		return { theirs: normalized, ours: withoutExtras(normalize(ours[name] as Answer), normalized) };
	}

	it("has more than a hundred requests", () => {
		expect(Object.keys(theirs).length).toBeGreaterThan(100);
		expect(Object.keys(ours).sort()).toEqual(Object.keys(theirs).sort());
	});

	it("gives the same answers", () => {
		const names = Object.keys(theirs).filter((name) => !(name in differences) && !unsteady.includes(name));
		for (const name of names) {
			const answers = compare(name);
			expect(answers.ours, name).toEqual(answers.theirs);
		}
	});

	it.each(Object.entries(differences))("except: %s", (name, difference) => {
		const answers = compare(name);
		expect(answers.ours, difference.why).not.toEqual(answers.theirs);
		expect(normalize(ours[name] as Answer), difference.why).toMatchObject(difference.ours);
	});
});

describe("langgraphjs dev with useSaverInDev", () => {
	it("leaves its checkpoints in our database, where copies and deletions are done, too", async () => {
		const client: Client = clientFor(official.url);
		const { thread_id } = await client.threads.create();
		const asked = await client.runs.wait(thread_id, "bridged", { input: { topic: "bridges" } });
		expect(asked).toHaveProperty("__interrupt__");
		const saver = new SqliteSaver(join(official.folder, "checkpoints.db"));
		const { head, checkpoints } = (await saver.getThread(thread_id))!;
		const state = await client.threads.getState(thread_id);
		expect([head, checkpoints]).toEqual([state.checkpoint.checkpoint_id, 3]);
		expect(state).toMatchObject({ next: ["review"], metadata: { graph_id: "bridged", source: "loop" } });
		const tuple = await saver.getTuple({ configurable: { thread_id } });
		expect(tuple?.checkpoint.channel_values).toMatchObject({ topic: "bridges", draft: "On bridges." });

		const copy = await client.threads.copy(thread_id);
		expect((await client.threads.getHistory(copy.thread_id)).length).toBe(3);
		expect((await saver.getThread(copy.thread_id))?.head).toBe(head);
		await client.runs.wait(thread_id, "bridged", { command: { resume: "yes" } });
		expect((await client.threads.getState(thread_id)).values).toMatchObject({ draft: "On bridges. (yes)" });
		const [, second] = await client.runs.list(thread_id);
		await client.runs.delete(thread_id, second!.run_id);
		expect((await client.threads.getState(thread_id)).checkpoint.checkpoint_id).toBe(head);

		await client.threads.delete(thread_id);
		await client.threads.getState(copy.thread_id);
		expect(await saver.getThread(thread_id)).toBeUndefined();
		expect(await saver.getThread(copy.thread_id)).toBeDefined();
		await saver.close();
	});

	it("does nothing elsewhere", async () => {
		const { useSaverInDev } = await import("../../src/langgraph-dev.ts");
		expect(await useSaverInDev(new SqliteSaver("/nowhere/at/all.db"))).toBe(false);
	});
});

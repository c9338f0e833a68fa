import { setTimeout } from "node:timers/promises";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Client } from "@langchain/langgraph-sdk";
import { SqliteSaver } from "../../src/sqlite.ts";
import { makeTemporaryFolder, removeFolder } from "../support/run-node.ts";
import { backends } from "./support/backends.ts";
import { makeGate } from "./support/gate.ts";
import { collect, startServer } from "./support/server.ts";

/** Waits until the graph `work` has done its first step, and stands at the gate. */
async function atGate(client: Client, threadId: string): Promise<void> {
	while ((await client.threads.getState(threadId)).next[0] !== "second") await setTimeout(5);
}

async function logOf(client: Client, threadId: string): Promise<string[]> {
	return (await client.threads.getState<{ log: string[] }>(threadId)).values.log;
}

describe.each(backends)("Runs on a $name", (backend) => {
	it("are waited for, joined, listed and told of", async () => {
		const { client } = await startServer(backend);
		const { thread_id } = await client.threads.create({ metadata: { owner: "Ada" } });
		let created: object | undefined;
		const values = await client.runs.wait(thread_id, "work", {
			input: { name: "one" },
			metadata: { number: 1 },
			config: { tags: ["a"], configurable: { model: "small", api_key: "secret" } },
			onRunCreated: (run) => {
				created = run;
			},
		});
		expect(values).toMatchObject({ log: ["one started", "one worked", "one done"] });
		const { run_id } = await client.runs.create(thread_id, "work", { input: { name: "two" } });
		expect(await client.runs.join(thread_id, run_id)).toMatchObject({ name: "two" });
		const runs = await client.runs.list(thread_id);
		expect(runs.map((run) => [run.status, run.metadata])).toMatchObject([
			["success", { owner: "Ada", graph_id: "work", created_by: "system" }],
			["success", { owner: "Ada", number: 1 }],
		]);
		expect(created).toEqual({ run_id: runs[1]?.run_id, thread_id });
		expect(await client.runs.get(thread_id, run_id)).toEqual(runs[0]);
		expect(await client.runs.list(thread_id, { limit: 1, offset: 1 })).toEqual([runs[1]]);
		expect(await client.runs.list(thread_id, { status: "error" })).toEqual([]);
		expect(await client.runs.list(thread_id, { limit: 1, select: ["run_id"] })).toEqual([{ run_id }]);
		await expect(client.runs.get(thread_id, "00000000-0000-7000-8000-000000000000")).rejects.toThrow("Run not found");
		// What one run was configured with, later ones start from; but secrets are written nowhere.
		expect(runs[0]).toMatchObject({ kwargs: { config: { configurable: { model: "small" } } } });
		expect(JSON.stringify([runs, await client.threads.get(thread_id)])).not.toContain("secret");
	});

	it("start from a checkpoint, and the next one from the head again", async () => {
		const { client } = await startServer(backend);
		const { thread_id } = await client.threads.create();
		await client.runs.wait(thread_id, "work", { input: { name: "one" } });
		const past = (await client.threads.getHistory(thread_id)).find(({ next }) => next[0] === "third")!;
		const values = await client.runs.wait(thread_id, "work", { input: null, checkpoint: past.checkpoint });
		expect(values).toMatchObject({ log: ["one started", "one worked", "one done"] });
		const id = past.checkpoint.checkpoint_id!;
		await client.runs.wait(thread_id, "work", { input: { name: "two" }, checkpointId: id });
		expect(await logOf(client, thread_id)).toEqual([
			"one started",
			"one worked",
			"two started",
			"two worked",
			"two done",
		]);
		await client.runs.wait(thread_id, "work", { input: { name: "three" } });
		expect((await logOf(client, thread_id)).slice(5)).toEqual(["three started", "three worked", "three done"]);
	});

	it("stop at interrupts and go on when they are answered", async () => {
		const { client } = await startServer(backend);
		const { thread_id } = await client.threads.create();
		const asked = await client.runs.wait(thread_id, "review", { input: { topic: "ships" } });
		expect(asked).toEqual({ __interrupt__: [{ id: expect.any(String), value: { question: 'Publish "On ships."?' } }] });
		const thread = await client.threads.get(thread_id);
		const { tasks } = await client.threads.getState(thread_id);
		expect(thread).toMatchObject({ status: "interrupted", interrupts: { [tasks[0]!.id]: tasks[0]!.interrupts } });
		const done = await client.runs.wait(thread_id, "review", { command: { resume: "yes" } });
		expect(done).toEqual({ topic: "ships", verdict: "yes", draft: "On ships. (yes)" });
		expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle", interrupts: {} });
	});

	it("stop before and after nodes that a client names, and go where a command sends them", async () => {
		const { client } = await startServer(backend);
		const { thread_id } = await client.threads.create();
		const next = async () => (await client.threads.getState(thread_id)).next;
		await client.runs.wait(thread_id, "work", { input: { name: "w" }, interruptBefore: ["second"] });
		expect(await next()).toEqual(["second"]);
		await client.runs.wait(thread_id, "work", { input: null, interruptAfter: "*" });
		expect(await next()).toEqual(["third"]);
		await client.runs.wait(thread_id, "work", { command: { goto: "second", update: { name: "sent" } } });
		expect(await next()).toEqual([]);
		expect((await logOf(client, thread_id)).sort()).toEqual([
			"sent done",
			"sent done",
			"sent worked",
			"w started",
			"w worked",
		]);
	});

	it("that fail say why, and leave the thread at the step that failed", async () => {
		const { client } = await startServer(backend);
		const { thread_id } = await client.threads.create();
		const payload = { input: { name: "w", fail: "broken" } };
		await expect(client.runs.wait(thread_id, "work", payload)).rejects.toThrow("RangeError: broken");
		const thread = await client.threads.get(thread_id);
		expect(thread).toMatchObject({ status: "error", error: { error: "RangeError", message: "broken" } });
		const { tasks, next } = await client.threads.getState(thread_id);
		expect(next).toEqual(["second"]);
		expect(tasks[0]?.error).toContain("broken");
		const parts = await collect(client.runs.stream(thread_id, "work", { input: null }));
		expect(parts.at(-1)).toMatchObject({ event: "error", data: { error: "RangeError", message: "broken" } });
		expect(JSON.stringify(parts)).not.toContain("graphs.ts");
		expect(await client.runs.list(thread_id)).toMatchObject([{ status: "error" }, { status: "error" }]);
		await client.threads.updateState(thread_id, { values: { fail: "" }, asNode: "first" });
		await client.runs.wait(thread_id, "work", { input: null });
		expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle" });
	});

	it("are cancelled, and can be gone on with", async () => {
		const { client } = await startServer(backend);
		const gate = makeGate();
		const { thread_id } = await client.threads.create();
		const { run_id } = await client.runs.create(thread_id, "work", { input: { name: "w", until: gate.path } });
		await atGate(client, thread_id);
		expect(await client.threads.get(thread_id)).toMatchObject({ status: "busy" });
		expect(await client.runs.get(thread_id, run_id)).toMatchObject({ status: "running" });
		await client.runs.cancel(thread_id, run_id, true);
		expect(await client.runs.get(thread_id, run_id)).toMatchObject({ status: "interrupted" });
		expect(await client.threads.get(thread_id)).toMatchObject({ status: "interrupted" });
		gate.open();
		expect(await client.runs.wait(thread_id, "work", { input: null })).toMatchObject({
			log: ["w started", "w worked", "w done"],
		});
		await client.runs.cancel(thread_id, run_id);
		await expect(client.runs.cancel(thread_id, "00000000-0000-7000-8000-000000000000")).rejects.toThrow("HTTP 404");
	});

	it("are rolled back as if they had never been", async () => {
		const { client } = await startServer(backend);
		const gate = makeGate();
		const { thread_id } = await client.threads.create();
		await client.runs.wait(thread_id, "work", { input: { name: "one" } });
		const before = await client.threads.getHistory(thread_id);
		const { run_id } = await client.runs.create(thread_id, "work", { input: { name: "two", until: gate.path } });
		await atGate(client, thread_id);
		const copy = await client.threads.copy(thread_id);
		await client.runs.cancel(thread_id, run_id, true, "rollback");
		expect(await client.threads.getHistory(thread_id)).toEqual(before);
		expect(await client.runs.list(thread_id)).toMatchObject([{ status: "success" }]);
		expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle" });
		// The copy that was made meanwhile is another thread.
		expect((await client.threads.getState(copy.thread_id)).next).toEqual(["second"]);
	});

	it("that are deleted take what they did along", async () => {
		const { client } = await startServer(backend);
		// What clients call a run or a thread in metadata of theirs is none.
		const metadata = { run_id: "mine", thread_id: "mine" };
		const { thread_id } = await client.threads.create({ metadata });
		await client.runs.wait(thread_id, "work", { input: { name: "one" }, metadata });
		const before = await client.threads.getState(thread_id);
		await client.runs.wait(thread_id, "work", { input: { name: "two" }, metadata });
		const [second] = await client.runs.list(thread_id);
		await client.runs.delete(thread_id, second!.run_id);
		expect(await client.threads.getState(thread_id)).toEqual(before);
		await expect(client.runs.get(thread_id, second!.run_id)).rejects.toThrow("HTTP 404");
	});

	it("of a busy thread are rejected, wait, interrupt or roll back, as the client says", async () => {
		const { client } = await startServer(backend);
		const start = async (threadId: string, multitaskStrategy?: "enqueue" | "interrupt" | "rollback" | "reject") => {
			const gate = makeGate();
			await client.threads.create({ threadId });
			const first = await client.runs.create(threadId, "work", { input: { name: "first", until: gate.path } });
			await atGate(client, threadId);
			const create = () =>
				client.runs.create(threadId, "work", {
					input: { name: "second", until: "" },
					...(multitaskStrategy && { multitaskStrategy }),
				});
			return { gate, first, create };
		};

		const rejected = await start("reject");
		await expect(rejected.create()).rejects.toThrow("HTTP 422: Thread is already running a task.");
		rejected.gate.open();
		await client.runs.join("reject", rejected.first.run_id);
		expect(await logOf(client, "reject")).toEqual(["first started", "first worked", "first done"]);

		const enqueued = await start("enqueue", "enqueue");
		const waiting = [await enqueued.create(), await enqueued.create()];
		expect(waiting.map(({ status }) => status)).toEqual(["pending", "pending"]);
		enqueued.gate.open();
		await client.runs.join("enqueue", waiting[1]!.run_id);
		const steps = (name: string) => [`${name} started`, `${name} worked`, `${name} done`];
		expect(await logOf(client, "enqueue")).toEqual([...steps("first"), ...steps("second"), ...steps("second")]);

		const interrupted = await start("interrupt", "interrupt");
		const interrupting = await interrupted.create();
		await client.runs.join("interrupt", interrupting.run_id);
		expect(await logOf(client, "interrupt")).toEqual(["first started", ...steps("second")]);
		const [, stopped] = await client.runs.list("interrupt");
		expect(stopped).toMatchObject({ run_id: interrupted.first.run_id, status: "interrupted" });

		const rolledBack = await start("rollback", "rollback");
		const instead = await rolledBack.create();
		await client.runs.join("rollback", instead.run_id);
		expect(await logOf(client, "rollback")).toEqual(steps("second"));
		expect(await client.runs.list("rollback")).toHaveLength(1);
	});

	it("that wait can be cancelled before they start", async () => {
		const { client } = await startServer(backend);
		const gate = makeGate();
		const { thread_id } = await client.threads.create();
		const first = await client.runs.create(thread_id, "work", { input: { name: "first", until: gate.path } });
		const second = await client.runs.create(thread_id, "work", {
			input: { name: "second" },
			multitaskStrategy: "enqueue",
		});
		const later = await client.runs.create(thread_id, "work", {
			input: { name: "later" },
			multitaskStrategy: "enqueue",
			afterSeconds: 3600,
		});
		await client.runs.cancelMany({ threadId: thread_id, runIds: [second.run_id, later.run_id] });
		gate.open();
		await client.runs.join(thread_id, first.run_id);
		const statuses = (await client.runs.list(thread_id)).map(({ status }) => status);
		expect(statuses).toEqual(["interrupted", "interrupted", "success"]);
		expect(await logOf(client, thread_id)).toEqual(["first started", "first worked", "first done"]);
	});

	it("without a thread leave nothing behind, unless they are told to", async () => {
		const { client, saver } = await startServer(backend);
		expect(await client.runs.wait(null, "work", { input: { name: "w" } })).toMatchObject({ name: "w" });
		expect(await client.runs.wait(null, "review", { input: { topic: "t" } })).toHaveProperty("__interrupt__");
		const parts = await collect(client.runs.stream(null, "work", { input: { name: "w" }, streamMode: "updates" }));
		expect(parts.map(({ event }) => event)).toEqual(["metadata", "updates", "updates", "updates"]);
		const batch = await client.runs.createBatch([
			{ assistantId: "work", input: { name: "a" } },
			{ assistantId: "work", input: { name: "b" } },
		]);
		for (const { run_id } of batch) await collect(client.runs.joinStream(null, run_id));
		expect(await saver.stats()).toMatchObject({ threads: 0, checkpoints: 0 });
		const keep = { input: { name: "kept" }, onCompletion: "keep" } as object;
		await client.runs.wait(null, "work", keep);
		expect(await client.threads.search()).toMatchObject([{ values: { name: "kept" }, status: "idle" }]);
	});

	it("need a thread and an assistant that are there", async () => {
		const { client } = await startServer(backend);
		await expect(client.runs.wait("new", "work", { input: {} })).rejects.toThrow(
			"HTTP 404: Thread with ID new not found",
		);
		expect(await client.threads.search()).toEqual([]);
		await client.runs.wait("new", "work", { input: { name: "w" }, ifNotExists: "create" });
		expect(await client.threads.get("new")).toMatchObject({ values: { name: "w" }, metadata: { graph_id: "work" } });
		await expect(client.runs.wait("new", "nobody", {})).rejects.toThrow('HTTP 404: No assistant found for "nobody"');
		const assistant = await client.assistants.get("work");
		await client.runs.wait("new", assistant.assistant_id, { input: { name: "by id" } });
	});

	it("fail if they can't be stored, and the server goes on", async () => {
		const { client, saver } = await startServer(backend);
		for (const method of ["put", "putWrites"] as const) {
			const { thread_id } = await client.threads.create();
			const original = saver[method].bind(saver) as (...args: any[]) => Promise<any>;
			let calls = 0;
			vi.spyOn(saver, method).mockImplementation(async (config: RunnableConfig, ...rest: any[]) => {
				// The records of the server are stored all the same.
				if (!config.configurable?.checkpoint_ns && ++calls === 3) throw new Error("The disk is gone.");
				return original(config, ...rest);
			});
			const run = client.runs.wait(thread_id, "work", { input: { name: "w" } });
			await expect(run).rejects.toThrow("Error: The disk is gone.");
			vi.restoreAllMocks();
			expect(await client.threads.get(thread_id)).toMatchObject({ status: "error" });
			await client.runs.wait(thread_id, "work", { input: { name: "again" } });
			expect(await client.threads.get(thread_id)).toMatchObject({ status: "idle", values: { name: "again" } });
		}
	});

	it("end when the time is up", async () => {
		const { client } = await startServer(backend, { limits: { runSeconds: 0.2 } });
		const { thread_id } = await client.threads.create();
		const payload = { input: { name: "w", until: makeGate().path } };
		await expect(client.runs.wait(thread_id, "work", payload)).rejects.toThrow("TimeoutError");
		expect(await client.runs.list(thread_id)).toMatchObject([{ status: "timeout" }]);
		expect(await client.threads.get(thread_id)).toMatchObject({ status: "error" });
	});
});

describe("On a saver that refuses branches by accident", () => {
	it("runs, forks and records work, and of two servers one is refused", async () => {
		const folder = makeTemporaryFolder();
		const open = () => new SqliteSaver(`${folder}/checkpoints.db`, { onConflict: "reject" });
		const savers = [open(), open()];
		const [one, other] = await Promise.all(savers.map((checkpointer) => startServer(undefined, { checkpointer })));
		const { client } = one!;
		const { thread_id } = await client.threads.create();
		await client.threads.update(thread_id, { metadata: { a: 1 } });
		await client.runs.wait(thread_id, "work", { input: { name: "one" } });
		await client.runs.wait(thread_id, "work", { input: { name: "two" } });
		const past = (await client.threads.getHistory(thread_id))[2]!.checkpoint;
		await client.runs.wait(thread_id, "work", { input: null, checkpoint: past });
		await client.threads.updateState(thread_id, { values: { name: "x" }, checkpointId: past.checkpoint_id! });
		await client.threads.updateState(thread_id, {
			values: null,
			asNode: "__copy__",
			checkpointId: past.checkpoint_id!,
		});
		await client.runs.wait(thread_id, "work", { input: null });

		const gate = makeGate();
		const slow = await client.runs.create(thread_id, "work", { input: { name: "slow", until: gate.path } });
		await atGate(client, thread_id);
		await other!.client.runs.wait(thread_id, "work", { input: { name: "quick", until: "" } });
		gate.open();
		await client.runs.join(thread_id, slow.run_id);
		expect(await client.runs.get(thread_id, slow.run_id)).toMatchObject({ status: "error" });
		expect(await client.threads.get(thread_id)).toMatchObject({ values: { name: "quick" } });
		for (const saver of savers) await saver.close();
		removeFolder(folder);
	});
});

import { setTimeout } from "node:timers/promises";
import { inTemporaryFolder } from "../support/run-node.ts";
import { backends, postgres, sqlite } from "./support/backends.ts";
import { makeGate } from "./support/gate.ts";
import { serveFile } from "./support/serve-file-process.ts";
import { clientFor, startServer } from "./support/server.ts";

describe.each([sqlite, postgres])("After a restart, on a $name", (backend) => {
	it("threads, runs, statuses and interrupts are as they were", async () => {
		const before = await startServer(backend);
		const { client } = before;
		await client.threads.create({ threadId: "new", metadata: { owner: "Ada" } });
		for (const threadId of ["idle", "interrupted", "error", "nested"]) await client.threads.create({ threadId });
		await client.runs.wait("idle", "work", { input: { name: "one" }, config: { configurable: { model: "m" } } });
		await client.runs.wait("interrupted", "review", { input: { topic: "two" } });
		await client.runs.wait("error", "work", { input: { name: "three", fail: "no" }, raiseError: false });
		await client.runs.wait("nested", "nested", { input: { ask: true } });
		const query = { sortBy: "thread_id", sortOrder: "asc", limit: 100 } as const;
		const known = async (of: typeof client) => ({
			threads: await of.threads.search(query),
			runs: await Promise.all((await of.threads.search(query)).map((thread) => of.runs.list(thread.thread_id))),
			histories: await Promise.all(["idle", "interrupted", "error"].map((id) => of.threads.getHistory(id))),
		});
		const expected = await known(client);
		expect(expected.threads.map(({ status }) => status)).toEqual([
			"error",
			"idle",
			"interrupted",
			"interrupted",
			"idle",
		]);

		const after = await before.restart();
		expect(await known(after.client)).toEqual(expected);
		const done = await after.client.runs.wait("interrupted", "review", { command: { resume: "yes" } });
		expect(done).toMatchObject({ draft: "On two. (yes)" });
		const nested = await after.client.runs.wait("nested", "nested", { command: { resume: "yes" } });
		expect(nested).toMatchObject({ log: expect.arrayContaining(["child heard yes", "after"]) });
		const [, run] = await after.client.runs.list("interrupted");
		expect(await after.client.runs.join("interrupted", run!.run_id)).toMatchObject({ verdict: "yes" });
	});
});

describe.each(backends)("Two servers on one $name", (backend) => {
	it("see what the other does to threads that they have looked at", async () => {
		const one = await startServer(backend);
		const other = await one.restart();
		const { thread_id } = await one.client.threads.create();
		await one.client.runs.wait(thread_id, "review", { input: { topic: "first" } });
		await one.client.runs.wait(thread_id, "review", { command: { resume: "yes" } });
		const statuses = async () =>
			Promise.all([one, other].map(async ({ client }) => (await client.threads.get(thread_id)).status));
		expect(await statuses()).toEqual(["idle", "idle"]);
		await other.client.runs.wait(thread_id, "review", { input: { topic: "second" } });
		expect(await statuses()).toEqual(["interrupted", "interrupted"]);
		expect(await one.client.threads.search({ status: "interrupted" })).toMatchObject([{ thread_id }]);
		await one.client.runs.wait(thread_id, "review", { command: { resume: "yes" } });
		expect(await statuses()).toEqual(["idle", "idle"]);
		// It has no such input: it fails before it has stored anything.
		await other.client.runs.wait(thread_id, "review", { input: { topic: 1 } as never, raiseError: false });
		expect(await statuses()).toEqual(["error", "error"]);
		await one.client.threads.delete(thread_id);
		await expect(other.client.threads.get(thread_id)).rejects.toThrow("HTTP 404");
	});
});

describe("A server that is killed", () => {
	it("leaves a run that goes on after a restart, where it was", async () => {
		await inTemporaryFolder(async (folder) => {
			const file = `${folder}/checkpoints.db`;
			const gate = makeGate();
			const first = await serveFile(file);
			const client = clientFor(first.url);
			await client.threads.create({ threadId: "asking", metadata: { owner: "Ada" } });
			await client.runs.wait("asking", "review", { input: { topic: "death" } });
			await client.threads.create({ threadId: "working" });
			const run = await client.runs.create("working", "work", { input: { name: "w", until: gate.path } });
			while ((await client.threads.getState("working")).next[0] !== "second") await setTimeout(5);
			await first.kill();

			const second = await serveFile(file);
			const again = clientFor(second.url);
			expect(await again.threads.get("working")).toMatchObject({ status: "interrupted", interrupts: {} });
			expect(await again.runs.get("working", run.run_id)).toMatchObject({ status: "interrupted" });
			const asking = await again.threads.get("asking");
			expect(asking).toMatchObject({ status: "interrupted", metadata: { owner: "Ada" } });
			expect(Object.values(asking.interrupts)).toMatchObject([[{ value: { question: 'Publish "On death."?' } }]]);
			gate.open();
			const values = await again.runs.wait("working", "work", { input: null });
			expect(values).toMatchObject({ log: ["w started", "w worked", "w done"] });
			expect(await again.threads.get("working")).toMatchObject({ status: "idle" });
			expect(await again.runs.wait("asking", "review", { command: { resume: "yes" } })).toMatchObject({
				draft: "On death. (yes)",
			});
			await second.kill();
		});
	});
});

describe.each(backends)("A server that is closed, on a $name", (backend) => {
	it("stops its runs and waits until all is stored", async () => {
		const { client, handler, restart, fetch } = await startServer(backend);
		const gate = makeGate();
		const { thread_id } = await client.threads.create();
		await client.runs.create(thread_id, "work", { input: { name: "w", until: gate.path } });
		while ((await client.threads.getState(thread_id)).next[0] !== "second") await setTimeout(5);
		await handler.close();
		expect(await client.runs.list(thread_id)).toMatchObject([{ status: "interrupted" }]);
		expect((await fetch("/runs/wait", { json: { assistant_id: "work" } })).status).toBe(503);
		gate.open();
		const after = await restart();
		expect(await after.client.runs.wait(thread_id, "work", { input: null })).toMatchObject({
			log: ["w started", "w worked", "w done"],
		});
	});
});

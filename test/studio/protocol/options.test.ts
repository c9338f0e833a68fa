import { Client } from "langgraph-sdk-next";
import { makeGate } from "../support/gate.ts";
import { collect, startServer } from "../support/server.ts";

const clientFor = (apiUrl: string) => new Client({ apiUrl, apiKey: null, callerOptions: { maxRetries: 0 } });

describe("What newer clients ask the runs API for", () => {
	it("follows all runs of a thread, and goes on where it was cut off", async () => {
		const { url } = await startServer();
		const client = clientFor(url);
		const { thread_id } = await client.threads.create();
		const gate = makeGate();
		const controller = new AbortController();
		const seen: { id?: string; event: string; data: unknown }[] = [];
		const following = (async () => {
			for await (const part of client.threads.joinStream(thread_id, { signal: controller.signal })) seen.push(part);
		})().catch(() => {});
		await new Promise((resolve) => setTimeout(resolve, 100));
		const start = (input: Record<string, unknown>) =>
			client.runs.create(thread_id, "work", { input, multitaskStrategy: "enqueue", streamResumable: true });
		const one = await start({ name: "one", until: gate.path });
		const two = await start({ name: "two" });
		await vi.waitFor(() => expect(seen.at(-1)).toMatchObject({ data: { log: ["one started"] } }));
		controller.abort();
		await following;

		const again = new AbortController();
		const lastEventId = seen.at(-1)!.id as string;
		gate.open();
		const rest: typeof seen = [];
		for await (const part of client.threads.joinStream(thread_id, { signal: again.signal, lastEventId })) {
			rest.push(part);
			if (rest.filter(({ data }) => (data as { status?: string }).status === "run_done").length === 2) break;
		}
		const done = (run_id: string) => ({ event: "metadata", data: { status: "run_done", run_id } });
		expect([...seen, ...rest]).toMatchObject([
			{ event: "metadata", data: { run_id: one.run_id } },
			...Array(4).fill({ event: "values" }),
			done(one.run_id),
			{ event: "metadata", data: { run_id: two.run_id } },
			...Array(4).fill({ event: "values" }),
			done(two.run_id),
		]);
		const known = new Set([...seen, ...rest].map(({ id }) => id).filter((id) => id !== undefined));
		expect(known.size).toBe(10);
	});

	it("follows only the beginnings and the ends", async () => {
		const { url } = await startServer();
		const client = clientFor(url);
		const { thread_id } = await client.threads.create();
		const parts = (async () => {
			const seen: unknown[] = [];
			for await (const part of client.threads.joinStream(thread_id, { streamMode: "lifecycle" })) {
				seen.push(part.data);
				if (seen.length === 2) return seen;
			}
		})();
		await new Promise((resolve) => setTimeout(resolve, 100));
		const { run_id } = await client.runs.create(thread_id, "work", { input: { name: "one" } });
		expect(await parts).toEqual([
			{ run_id, attempt: 1 },
			{ run_id, status: "run_done" },
		]);
		await expect(collect(client.threads.joinStream("nobody"))).rejects.toThrow("not found");
		await expect(collect(client.threads.joinStream(thread_id, { streamMode: "state_update" }))).rejects.toThrow("422");
	});

	it("selects parts of states", async () => {
		const { url } = await startServer();
		const client = clientFor(url);
		const { thread_id } = await client.threads.create();
		await client.runs.wait(thread_id, "work", { input: { name: "one" } });
		const select = ["values.log", "next"] as never;
		const log = ["one started", "one worked", "one done"];
		const expected = { values: { log }, next: [] };
		expect(await client.threads.getState(thread_id, undefined, { select })).toEqual(expected);
		const { checkpoint } = await client.threads.getState(thread_id);
		expect(await client.threads.getState(thread_id, checkpoint, { select })).toEqual(expected);
		expect(await client.threads.getState(thread_id, checkpoint.checkpoint_id!, { select })).toEqual(expected);
		const history = await client.threads.getHistory(thread_id, { select, limit: 2 });
		expect(history).toEqual([expected, { values: { log: log.slice(0, 2) }, next: ["third"] }]);
	});

	it("streams some namespaces only", async () => {
		const { url } = await startServer();
		const client = clientFor(url);
		const { thread_id } = await client.threads.create();
		const stream = (streamNamespaces?: string[]) =>
			collect(
				client.runs.stream(thread_id, "nested", {
					input: { log: [] },
					streamMode: "updates",
					streamSubgraphs: true,
					streamNamespaces,
				}),
			);
		const names = (parts: { event: string }[]) => parts.map(({ event }) => event.replace(/:.*/, ""));
		expect(names(await stream([""]))).toEqual(["metadata", "updates", "updates", "updates"]);
		expect(names(await stream(["child"]))).toEqual(["metadata", "updates|child", "updates|child"]);
		expect((await stream()).length).toBe(6);
	});

	it("patches the metadata of a thread by its state", async () => {
		const { url } = await startServer();
		const client = clientFor(url);
		const { thread_id } = await client.threads.create({ metadata: { one: 1 } });
		await client.threads.patchState(thread_id, { two: 2 });
		expect(await client.threads.get(thread_id)).toMatchObject({ metadata: { one: 1, two: 2 } });
	});

	it("keeps why a run was cancelled", async () => {
		const { url, restart } = await startServer();
		const client = clientFor(url);
		const { thread_id } = await client.threads.create();
		const { run_id } = await client.runs.create(thread_id, "work", { input: { name: "one", until: "/never" } });
		const cancel = (action: "interrupt" | "rollback") =>
			client.runs.cancel(thread_id, run_id, true, action, { reason: "taken" });
		await expect(cancel("rollback")).rejects.toThrow("400");
		await cancel("interrupt");
		const cancelled = { status: "interrupted", cancel_reason: expect.stringMatching(/^taken:/) };
		expect(await client.runs.get(thread_id, run_id)).toMatchObject(cancelled);
		expect(await clientFor((await restart()).url).runs.get(thread_id, run_id)).toMatchObject(cancelled);
	});

	it("takes strict_resume", async () => {
		const { url } = await startServer();
		const client = clientFor(url);
		const { thread_id } = await client.threads.create();
		await client.runs.wait(thread_id, "review", { input: { topic: "t" } });
		const values = await client.runs.wait(thread_id, "review", { command: { resume: "yes" }, strictResume: true });
		expect(values).toMatchObject({ draft: "On t. (yes)" });
	});

	it("learns that there are no crons", async () => {
		const { url } = await startServer();
		const { crons } = clientFor(url);
		await expect(crons.create("chat", { schedule: "* * * * *" })).rejects.toThrow("This server has no crons");
		await expect(crons.search()).rejects.toThrow("This server has no crons");
		await expect(crons.delete("c")).rejects.toThrow("This server has no crons");
		await expect(crons.createForThread("t", "chat", { schedule: "* * * * *" })).rejects.toThrow("no crons");
	});
});

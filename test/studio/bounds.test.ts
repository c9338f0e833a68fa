import { startServer, type TestServer } from "./support/server.ts";

/** JSON as text: what is very deep can't be made by `JSON.stringify`. */
async function post(server: TestServer, path: string, text: string): Promise<[number, string]> {
	const response = await server.fetch(path, { method: "POST", body: text });
	return [response.status, await response.text()];
}

describe("A request", () => {
	const deep: Record<string, (levels: number) => string> = {
		arrays: (levels) => "[".repeat(levels) + "]".repeat(levels),
		objects: (levels) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`,
		both: (levels) => `${'[{"a":'.repeat(levels / 2)}1${"}]".repeat(levels / 2)}`,
	};
	const paths: Record<string, (json: string) => string> = {
		"/threads": (json) => `{"metadata":{"a":${json}}}`,
		"/threads/search": (json) => `{"metadata":{"a":${json}}}`,
		"/threads/count": (json) => `{"values":{"a":${json}}}`,
		"/threads/t/history": (json) => `{"metadata":{"source":${json},"a":${json}}}`,
		"/threads/t/state": (json) => `{"values":{"name":${json}}}`,
		"/threads/t/runs/wait": (json) => `{"assistant_id":"work","input":{"name":${json}}}`,
		"/threads/t/runs": (json) => `{"assistant_id":"work","config":{"configurable":{"a":${json}}}}`,
		"/runs/wait": (json) => `{"assistant_id":"work","context":{"a":${json}},"metadata":{"a":${json}}}`,
		"/assistants/search": (json) => `{"metadata":{"a":${json}}}`,
		"/store/items/search": (json) => `{"filter":{"a":${json}}}`,
	};

	it.each(Object.keys(paths))("to %s may not be nested very deep, whatever its shape", async (path) => {
		const server = await startServer();
		await server.client.threads.create({ threadId: "t", metadata: { a: [[1]] } });
		await server.client.runs.wait("t", "work", { input: { name: "w" } });
		for (const [shape, make] of Object.entries(deep))
			for (const levels of [1100, 20_000, 500_000])
				expect(await post(server, path, paths[path]!(make(levels))), `${shape} ${levels}`).toEqual([
					400,
					"The JSON is nested deeper than 1000 levels.",
				]);
		const [status] = await post(server, path, paths[path]!(deep.both!(100)));
		expect(status).toBe(200);
		expect((await server.fetch("/ok")).status).toBe(200);
	});

	it("may not list more than a thousand things, nor look for more", async () => {
		const server = await startServer();
		await server.client.threads.create({ threadId: "t", metadata: { a: [1] } });
		const names = (count: number) => Array.from({ length: count }, (_, n) => `t${n}`);
		const step = (count: number) => ({ updates: Array(count).fill({ values: null, as_node: "__start__" }) });
		const graph = { metadata: { graph_id: "work" } };
		const lists: [string, (count: number) => unknown][] = [
			["/threads/search", (count) => ({ ids: names(count) })],
			["/threads/count", (count) => ({ ids: names(count) })],
			["/threads/search", (count) => ({ select: names(count) })],
			["/threads/prune", (count) => ({ thread_ids: names(count) })],
			["/threads/search", (count) => ({ metadata: { a: names(count - 2) } })],
			["/threads/search", (count) => ({ values: Object.fromEntries(names(count - 1).map((name) => [name, 1])) })],
			["/threads/count", (count) => ({ metadata: { a: [names(count / 2), names(count / 2 - 4)] } })],
			["/threads/t/history", (count) => ({ metadata: { a: names(count - 2) } })],
			["/assistants/search", (count) => ({ metadata: { a: names(count - 2) } })],
			["/store/items/search", (count) => ({ filter: { a: names(count - 2) } })],
		];
		for (const [path, make] of lists) {
			const [fine] = await post(server, path, JSON.stringify(make(1000)));
			expect(fine, path).toBe(200);
			for (const count of [1002, 100_000]) {
				const [status, message] = await post(server, path, JSON.stringify(make(count)));
				expect([status, message], path).toEqual([400, expect.stringMatching(/at most 1000 /)]);
			}
		}
		for (const supersteps of [Array(1001).fill(step(1)), [step(1001)], [step(500), step(501)]]) {
			const [status, message] = await post(server, "/threads", JSON.stringify({ supersteps, ...graph }));
			expect([status, message]).toEqual([400, expect.stringContaining("at most 1000")]);
		}
		const runs = Array(1001).fill({ assistant_id: "work" });
		const [batch] = await post(server, "/runs/batch", JSON.stringify(runs));
		const [cancel] = await post(server, "/runs/cancel", JSON.stringify({ run_ids: names(1001) }));
		expect([batch, cancel]).toEqual([400, 400]);
		expect(await server.client.threads.count()).toBe(1);
	});
});

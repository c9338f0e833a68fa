import { share } from "../support/share.ts";
import { backends } from "./support/backends.ts";
import { heapUsed } from "./support/heap.ts";
import { clientFor, startServer } from "./support/server.ts";

/** So long that the events of a hundred runs, if anything held them, could not be overlooked. */
const PADDING = "x".repeat(40_000);
const MIB = 1024 * 1024;

describe.each(share(backends, 3, 2))("A hundred runs streamed at once on a $name", (backend) => {
	it("lose and mix no events, and leave no memory behind", async () => {
		const server = await startServer(backend);
		const client = clientFor(server.url);
		const names = Array.from({ length: 100 }, (_, n) => `run ${n}`);
		let characters = 0;
		/** Each run says its name in every event: in the stream of another it would be noticed. */
		const stream = async (name: string) => {
			const thread = encodeURIComponent(`thread of ${name}`);
			const payload = { input: { name, until: "", fail: "" }, streamMode: ["values", "updates", "tasks"] as never };
			const metadata = { padding: PADDING };
			const parts: { id: string; event: string; data: any }[] = [];
			for await (const part of client.runs.stream(thread, "work", { ...payload, metadata, ifNotExists: "create" })) {
				characters += JSON.stringify(part).length;
				parts.push(part as never);
			}
			expect(parts.map(({ id }) => Number(id))).toEqual(parts.map((_, n) => n));
			const log = parts
				.filter(({ event }) => event === "updates")
				.map(({ data }) => Object.values<any>(data)[0].log[0]);
			expect(log).toEqual([`${name} started`, `${name} worked`, `${name} done`]);
			const values = parts.filter(({ event }) => event === "values").map(({ data }) => data);
			expect(values.map(({ log }) => log.length)).toEqual([0, 1, 2, 3]);
			expect(new Set(values.map(({ name }) => name))).toEqual(new Set([name]));
			const tasks = parts.filter(({ event }) => event === "tasks").map(({ data }) => data);
			expect(tasks).toHaveLength(6);
			for (const { metadata } of tasks) if (metadata) expect(metadata.run_id).toBe(parts[0]!.data.run_id);
			return parts[0]!.data.run_id as string;
		};
		await Promise.all(names.slice(0, 20).map((name) => stream(`first ${name}`)));
		const before = await heapUsed();
		characters = 0;
		const runIds = await Promise.all(names.map((name) => stream(name)));
		expect(new Set(runIds).size).toBe(100);
		const grown = (await heapUsed()) - before;
		expect(characters).toBeGreaterThan(11 * MIB);
		expect(grown).toBeLessThan(6 * MIB);
		expect(await client.threads.count({ status: "idle" })).toBe(120);
	});
});

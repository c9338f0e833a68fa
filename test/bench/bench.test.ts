import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inTemporaryFolder, runNode, typescript } from "../support/run-node.ts";

describe("The benchmark", () => {
	it("prints a table of ratios and writes all figures to a file", () =>
		inTemporaryFolder(async (folder) => {
			const json = join(folder, "figures.json");
			const args = ["--quick", "--only", "chat-1000", "--json", json];
			const output = await runNode([...typescript, "test/bench/bench.ts", ...args]);

			const measures = ["bytes", "put + putWrites", "getTuple of the head", "list 50"];
			for (const measure of measures) {
				const line = output.split("\n").find((line) => line.startsWith(`| chat, 1,000 messages: ${measure} |`));
				expect(line).toMatch(/\| \**-?\d+(\.\d+)?×\** \| ≥ \d+× \| \**-?\d+(\.\d+)?×\** \| ≥ \d+× \|$/);
			}

			const { rows, limits, growth } = JSON.parse(readFileSync(json, "utf8"));
			expect(rows.length).toBeGreaterThan(0);
			for (const { ours, official, ratio } of rows) expect(ratio).toBe(official / ours);
			expect(limits.length).toBeGreaterThan(0);
			expect(growth.map(({ messages }: { messages: number }) => messages)).toEqual([1000, 1000]);
		}));

	it("says which workloads there are", async () => {
		const output = await runNode([...typescript, "test/bench/bench.ts", "--help"]);
		for (const name of ["chat-1000", "files", "agent", "growth"]) expect(output).toContain(name);
	});
});

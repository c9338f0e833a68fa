import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inTemporaryFolder, runNode, typescript } from "../support/run-node.ts";
import { isAll } from "../support/share.ts";

describe("The benchmark", () => {
	it("prints a table of ratios and writes all figures to a file, also of fresh processes and files that are open", () =>
		inTemporaryFolder(async (folder) => {
			const json = join(folder, "figures.json");
			const names = ["chat-1000", "cold-small-300", "open-small", ...(isAll ? ["cold-import", "open-chat"] : [])];
			const args = ["--quick", ...names.flatMap((name) => ["--only", name]), "--json", json];
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

			expect(output).toMatch(/\| cold, small states, first 300: put .* \| ≥ 1× \| .* \| ≥ 1× \|$/m);
			if (isAll) expect(output).toMatch(/\| cold, from the start of the process: .* \| ≥ 1× \| .* \| ≥ 1× \|$/m);
			expect(output).toMatch(
				/\| open, small states: .* 20,000 puts \| \d+\.\d+× \([−+][\d.]+ MB\) \| ≤ \+4 MB \| – \| {2}\|$/m,
			);
			if (isAll) expect(output).toMatch(/\| open, chat of 1,000 messages: .* \| ≥ 50× \| – \| {2}\|$/m);

			for (const { ours, official } of rows) {
				expect(ours).toBeGreaterThan(0);
				expect(official).toBeGreaterThan(0);
			}
			for (const { allowance, official, target } of rows)
				if (allowance !== undefined) expect(official / target).toBeCloseTo(official + allowance);
		}));

	it("says which workloads there are", async () => {
		const output = await runNode([...typescript, "test/bench/bench.ts", "--help"]);
		for (const name of ["chat-1000", "files", "agent", "cold-import", "open-small", "growth"])
			expect(output).toContain(name);
	});
});

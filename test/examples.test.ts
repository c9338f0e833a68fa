import { readdirSync } from "node:fs";
import { join } from "node:path";
import { inTemporaryFolder, root, runNode, typescript } from "./support/run-node.ts";

/** What each example must print, and what must be true of it. */
const examples: Record<string, (output: string) => void> = {
	"chat-restart.ts": (output) => {
		const lines = output.trimEnd().split("\n");
		expect(lines).toHaveLength(3);
		expect(lines[0]).toContain("2 messages] Who am I? -> I don't know you.");
		expect(lines[2]).toContain("6 messages] Who am I? -> You are Ada.");
		const processes = lines.map((line) => /process (\d+)/.exec(line)?.[1]);
		expect(new Set(processes).size).toBe(3);
	},

	"human-in-the-loop.ts": (output) => {
		expect(output).toContain(`ticket-1 waits before "refund": { question: 'Refund 40 EUR?' }`);
		expect(output).toContain("refunded 40 EUR, approved by Grace");
		expect(output).toContain("refused by Grace");
		expect(output).toContain("2 orders, 2 look-ups");
	},

	"time-travel.ts": (output) => {
		expect(output).toContain('step 1: next is "second line"');
		expect(output).toContain('Copied 4 checkpoints to "experiment".');
		expect(output).toMatch(/^main is now: .*saw the cat leave/m);
		expect(output).toMatch(/^experiment is: .*saw the fog leave/m);
		expect(output).toMatch(/^main once was: .*saw the fog leave/m);
	},

	"move-from-official.ts": (output) => {
		expect(output).toContain("102 checkpoints copied");
		expect(output).toContain('"sign" still asks: Who signs?');
		expect(output).toContain("101 notes, the last one: signed by Ada");
		const [, official, delta] = /official: ([\d.]+) MB, delta: ([\d.]+) MB/.exec(output) ?? [];
		expect(Number(official) / Number(delta)).toBeGreaterThan(5);
	},

	"demo.ts": (output) => {
		expect(output).toMatch(/Process \d+ got SIGKILL in question 41/);
		expect(output).toContain('Found 162 messages. Next is "tools".');
		expect(output).toContain("81 before, 79 after: 160 in all, 2 for each question");
		expect(output).toContain("● questions 1 to 20, 100 checkpoints\n");
		expect(output).toContain("├─● question 21, 5 checkpoints\n");
		expect(output).toMatch(/● questions 21 to 41, 103 checkpoints +✗ killed here/);
		expect(output).toMatch(/├─● question 61, 5 checkpoints +← head/);
		expect(output).toContain("All 410 checkpoints on disk");
		expect(Number(/(\d+) times smaller/.exec(output)?.[1])).toBeGreaterThan(10);
		expect(output.split("\n").length).toBeLessThan(60);
		expect(output, "no colours when the output is not a terminal").not.toContain("\u001b");
	},
};

describe("The examples", () => {
	it("are all tested", () => {
		const files = readdirSync(join(root, "examples")).filter((file) => file.endsWith(".ts"));
		expect(files.sort()).toEqual(Object.keys(examples).sort());
	});

	it.each(Object.keys(examples))("%s runs, says what it shows and leaves no file behind", async (file) => {
		await inTemporaryFolder(async (folder) => {
			const env = { ...process.env, TMPDIR: folder, TEMP: folder };
			const output = await runNode([...typescript, join("examples", file)], { env });
			examples[file]!(output);
			expect(readdirSync(folder).filter((name) => !name.startsWith("tsx-"))).toEqual([]);
		});
	});
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import { bundle } from "../support/bundle.ts";
import { inTemporaryFolder, root, runNode, typescript } from "../support/run-node.ts";

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

	"studio-hono.ts": (output) => {
		expect(output).toContain("Ada's run: { name: 'Ada', greeting: 'Hello, Ada!' }");
		expect(output).toContain("Ada sees 1 thread, Grace sees 0");
		expect(output).toContain("Grace asks for it: HTTP 403");
		expect(output).toContain("A stranger asks: HTTP 403");
		expect(output).toContain("The rest of the app: the application");
	},

	"use-stream.tsx": (output) => {
		expect(output).toContain("The page shows: nothing to pay\n");
		expect(output).toContain("The page shows: 40 EUR, to be approved | Pay 40 EUR?\n");
		expect(output).toContain("The page shows: 40 EUR, approved by Grace\n");
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
		const files = readdirSync(join(root, "examples")).filter((file) => /\.tsx?$/.test(file));
		expect(files.sort()).toEqual([...Object.keys(examples), "studio.ts"].sort());
	});

	it("studio.ts serves a graph, and takes less than 15 lines to do so", async () => {
		const code = readFileSync(join(root, "examples/studio.ts"), "utf8").replace(/\/\*\*.*?\*\//s, "");
		expect(code.split("\n").filter((line) => line.trim() !== "").length).toBeLessThan(15);
		const env = { ...process.env, PORT: "0", DATABASE: ":memory:" };
		const server = spawn(process.execPath, [...typescript, "examples/studio.ts"], { cwd: root, env });
		let output = "";
		while (!output.includes("Studio:")) output += (await once(server.stdout, "data"))[0];
		const client = new Client({ apiUrl: /http:\S+/.exec(output)![0], apiKey: null });
		expect(await client.runs.wait(null, "agent", { input: { name: "Ada" } })).toMatchObject({
			greeting: "Hello, Ada!",
		});
		server.kill();
		await once(server, "exit");
	});

	it.each(Object.keys(examples))("%s runs, says what it shows and leaves no file behind", async (file) => {
		await inTemporaryFolder(async (folder) => {
			const env = { ...process.env, TMPDIR: folder, TEMP: folder };
			await using program = await bundle(join("examples", file), { withPackages: false });
			examples[file]!(await runNode([program.path], { env }));
			expect(readdirSync(folder)).toEqual([]);
		});
	});
});

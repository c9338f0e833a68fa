import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { makeTemporaryFolder, removeFolder, root } from "../../support/run-node.ts";

/** A `langgraphjs dev` with the test project, in a folder of its own. */
export class OfficialServer {
	readonly url: string;
	readonly folder: string;
	readonly #process: ChildProcess;
	#output = "";

	private constructor(folder: string, port: number) {
		this.folder = folder;
		this.url = `http://127.0.0.1:${port}`;
		const cli = join(root, "node_modules/@langchain/langgraph-cli/dist/cli/cli.mjs");
		const args = [cli, "dev", "--no-browser", "--no-reload", "-n", "20", "--host", "127.0.0.1", "--port", String(port)];
		const env = { ...process.env, LANGGRAPH_CLI_NO_ANALYTICS: "1", LANGSMITH_TRACING: "false", VITEST: undefined };
		// It starts processes of its own, which are to end with it.
		this.#process = spawn(process.execPath, args, { cwd: folder, env, detached: true, stdio: "pipe" });
		for (const output of [this.#process.stdout, this.#process.stderr])
			output?.on("data", (data) => {
				this.#output += data;
			});
	}

	/** @param files further files of the project @param graphs further graphs */
	static async start(files: Record<string, string> = {}, graphs: Record<string, string> = {}): Promise<OfficialServer> {
		const folder = makeTemporaryFolder();
		cpSync(join(import.meta.dirname, "../project"), folder, { recursive: true });
		symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
		const all = Object.fromEntries(["chat", "review", "nested", "work"].map((name) => [name, `./graphs.ts:${name}`]));
		writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
		writeFileSync(
			join(folder, "langgraph.json"),
			JSON.stringify({ node_version: "20", dependencies: ["."], graphs: { ...all, ...graphs } }),
		);
		for (const [name, code] of Object.entries(files)) writeFileSync(join(folder, name), code);
		const server = new OfficialServer(folder, await findFreePort());
		await server.#isUp();
		return server;
	}

	async stop(): Promise<void> {
		const gone = new Promise((resolve) => this.#process.once("exit", resolve));
		process.kill(-(this.#process.pid as number), "SIGKILL");
		await gone;
		removeFolder(this.folder);
	}

	async #isUp(): Promise<void> {
		for (;;) {
			if (this.#process.exitCode !== null || / Error: /.test(this.#output)) throw new Error(this.#output);
			const response = await fetch(`${this.url}/ok`).catch(() => undefined);
			if (response?.ok) return;
			await setTimeout(100);
		}
	}
}

function findFreePort(): Promise<number> {
	return new Promise((resolve) => {
		const server = createServer();
		server.listen(0, "127.0.0.1", () => {
			const { port } = server.address() as { port: number };
			server.close(() => resolve(port));
		});
	});
}

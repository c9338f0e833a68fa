import { spawn } from "node:child_process";
import { once } from "node:events";
import { root, typescript } from "../../support/run-node.ts";

/** Serves the test graphs on a file in a process of its own. */
export async function serveFile(file: string, flags: string[] = []): Promise<{ url: string; kill(): Promise<void> }> {
	const args = [...flags, ...typescript, "test/studio/support/serve-file.ts", file];
	const server = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
	const gone = once(server, "exit");
	const kill = async () => {
		server.kill("SIGKILL");
		await gone;
	};
	let output = "";
	for await (const data of server.stdout) {
		output += data;
		const url = /http:\S+/.exec(output)?.[0];
		if (url !== undefined) return { url, kill };
	}
	throw new Error(`The server did not start: ${output}`);
}

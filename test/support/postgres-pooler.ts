import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import pg from "pg";

/** A message of PostgreSQL's protocol: its letter, and all its bytes. */
type Message = readonly [type: string, bytes: Buffer];

/**
 * What PgBouncer does in transaction mode, as far as a saver can tell: many clients share few connections, and each has
 * one only for the length of a transaction. Knows nothing of prepared statements, as PgBouncer before 1.21.
 */
export class PostgresPooler {
	readonly #server: Server;
	readonly #idle: Socket[] = [];
	readonly #waiting: ((socket: Socket) => void)[] = [];
	readonly #clients: pg.Client[];
	readonly #sockets = new Set<Socket>();
	readonly url: string;

	private constructor(server: Server, target: string, clients: pg.Client[]) {
		this.#server = server;
		this.#clients = clients;
		for (const client of clients) this.#idle.push(takeSocket(client));
		const url = new URL(target);
		url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
		this.url = url.href;
	}

	static async start(target: string, connections: number): Promise<PostgresPooler> {
		const clients = Array.from({ length: connections }, () => new pg.Client({ connectionString: target }));
		for (const client of clients) {
			client.on("error", () => {});
			await client.connect();
		}
		const server = createServer();
		await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
		const pooler = new PostgresPooler(server, target, clients);
		server.on("connection", (socket) => pooler.#serve(socket));
		return pooler;
	}

	async stop(): Promise<void> {
		for (const socket of this.#sockets) socket.destroy();
		for (const client of this.#clients) takeSocket(client).destroy();
		await new Promise((resolve) => this.#server.close(resolve));
	}

	#serve(client: Socket): void {
		this.#sockets.add(client);
		client.on("error", () => client.destroy());
		client.on("close", () => this.#sockets.delete(client));
		let rest: Buffer = Buffer.alloc(0);
		let isOpen = false;
		const batch: Buffer[] = [];
		/** The connection of the transaction that is under way. */
		let held: Socket | undefined;
		let turn = Promise.resolve();
		client.on("data", (bytes) => {
			rest = Buffer.concat([rest, bytes]);
			if (!isOpen) {
				if (rest.length < 8 || rest.length < rest.readInt32BE(0)) return;
				rest = rest.subarray(rest.readInt32BE(0));
				isOpen = true;
				client.write(WELCOME);
			}
			let messages: Message[];
			[messages, rest] = split(rest);
			for (const [type, message] of messages) {
				batch.push(message);
				if (type !== "S" && type !== "Q") continue;
				const sent = Buffer.concat(batch.splice(0));
				turn = turn.then(async () => {
					held = await this.#exchange(held ?? (await this.#acquire()), sent, client);
				});
			}
		});
	}

	/** Sends what a client says, and what is answered back. Returns the connection if a transaction is open on it. */
	#exchange(server: Socket, sent: Buffer, client: Socket): Promise<Socket | undefined> {
		return new Promise((resolve) => {
			let rest: Buffer = Buffer.alloc(0);
			const answer = (bytes: Buffer) => {
				client.write(bytes);
				let messages: Message[];
				[messages, rest] = split(Buffer.concat([rest, bytes]));
				const ready = messages.find(([type]) => type === "Z");
				if (ready === undefined) return;
				server.off("data", answer);
				const isIdle = ready[1][5] === "I".charCodeAt(0);
				if (isIdle) this.#release(server);
				resolve(isIdle ? undefined : server);
			};
			server.on("data", answer);
			server.write(sent);
		});
	}

	async #acquire(): Promise<Socket> {
		return this.#idle.pop() ?? new Promise((resolve) => this.#waiting.push(resolve));
	}

	#release(socket: Socket): void {
		const next = this.#waiting.shift();
		if (next === undefined) this.#idle.push(socket);
		else next(socket);
	}
}

/** The connection of a client that has logged in, without the client. */
function takeSocket(client: pg.Client): Socket {
	const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
	stream.removeAllListeners("data");
	return stream;
}

function split(bytes: Buffer): [Message[], rest: Buffer] {
	const messages: Message[] = [];
	let at = 0;
	while (bytes.length >= at + 5) {
		const end = at + 1 + bytes.readInt32BE(at + 1);
		if (bytes.length < end) break;
		messages.push([String.fromCharCode(bytes[at] as number), bytes.subarray(at, end)]);
		at = end;
	}
	return [messages, bytes.subarray(at)];
}

function message(type: string, ...parts: (number | string)[]): Buffer {
	const content = Buffer.concat(
		parts.map((part) => {
			if (typeof part === "string") return Buffer.from(part);
			const number = Buffer.alloc(4);
			number.writeInt32BE(part);
			return number;
		}),
	);
	const length = Buffer.alloc(4);
	length.writeInt32BE(content.length + 4);
	return Buffer.concat([Buffer.from(type), length, content]);
}

/** Welcomes a client without asking for a password: authentication, a setting, a key to cancel with, ready. */
const WELCOME = Buffer.concat([
	message("R", 0),
	message("S", "client_encoding\0UTF8\0"),
	message("K", 1, 1),
	message("Z", "I"),
]);

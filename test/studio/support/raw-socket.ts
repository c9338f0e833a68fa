import { request } from "node:http";
import type { Socket } from "node:net";

/** A frame that came from the server. */
export interface RawFrame {
	readonly opcode: number;
	readonly payload: Buffer;
	/** What it says, if it is text. */
	readonly json: { type: string; id?: number | null; [key: string]: unknown };
}

/** A WebSocket of which every byte can be chosen. */
export class RawSocket {
	readonly #socket: Socket;
	#received: Buffer;

	private constructor(socket: Socket, head: Buffer) {
		this.#socket = socket;
		this.#received = head;
		socket.on("data", (data) => {
			this.#received = Buffer.concat([this.#received, data]);
		});
		socket.on("error", () => {});
	}

	/** Opens one, or answers the status of the refusal. */
	static open(url: string, headers: Record<string, string> = {}): Promise<RawSocket | number> {
		return new Promise((resolve, reject) => {
			const upgrade = {
				connection: "Upgrade",
				upgrade: "websocket",
				"sec-websocket-version": "13",
				"sec-websocket-key": Buffer.alloc(16, 7).toString("base64"),
			};
			const sent = request(url, { headers: { ...upgrade, ...headers } });
			sent.on("upgrade", (_, socket, head) => resolve(new RawSocket(socket as Socket, head)));
			sent.on("response", (response) => resolve(response.resume().statusCode as number));
			sent.on("error", reject);
			sent.end();
		});
	}

	static async mustOpen(url: string, headers: Record<string, string> = {}): Promise<RawSocket> {
		const socket = await RawSocket.open(url, headers);
		if (typeof socket === "number") throw new Error(`Refused with ${socket}.`);
		return socket;
	}

	/** @param first the opcode, and 0x80 if the frame is the last of its message */
	sendFrame(first: number, payload: string | Buffer, isMasked = true): void {
		const bytes = Buffer.from(payload);
		const lengthBytes = bytes.length > 0xffff ? 8 : bytes.length > 125 ? 2 : 0;
		const header = Buffer.alloc(2 + lengthBytes);
		header[0] = first;
		header[1] = (isMasked ? 0x80 : 0) | (lengthBytes === 8 ? 127 : lengthBytes === 2 ? 126 : bytes.length);
		if (lengthBytes === 8) header.writeBigUInt64BE(BigInt(bytes.length), 2);
		if (lengthBytes === 2) header.writeUInt16BE(bytes.length, 2);
		const mask = Buffer.from([1, 2, 3, 4]);
		if (isMasked) for (const [i, byte] of bytes.entries()) bytes[i] = byte ^ (mask[i & 3] as number);
		this.sendBytes(Buffer.concat(isMasked ? [header, mask, bytes] : [header, bytes]));
	}

	sendBytes(bytes: Buffer): void {
		this.#socket.write(bytes);
	}

	send(message: unknown): void {
		this.sendFrame(0x81, typeof message === "string" ? message : JSON.stringify(message));
	}

	/** The next frame; undefined when the connection has ended. */
	async next(): Promise<RawFrame | undefined> {
		for (;;) {
			const frame = this.#parse();
			if (frame !== undefined) return frame;
			if (this.#socket.readableEnded || this.#socket.destroyed) return undefined;
			await new Promise((resolve) => setTimeout(resolve, 2));
		}
	}

	/** The answer to a command, without events before it. */
	async ask(command: { id: number; method: string; params?: object }): Promise<RawFrame["json"]> {
		this.send(command);
		for (;;) {
			const frame = await this.next();
			if (frame === undefined) throw new Error("The connection has ended.");
			if (frame.opcode === 1 && frame.json.type !== "event") return frame.json;
		}
	}

	/** The code that the server closes it with. */
	async closeCode(): Promise<number | undefined> {
		for (;;) {
			const frame = await this.next();
			if (frame === undefined) return undefined;
			if (frame.opcode === 8) return frame.payload.readUInt16BE();
		}
	}

	destroy(): void {
		this.#socket.destroy();
	}

	#parse(): RawFrame | undefined {
		const bytes = this.#received;
		if (bytes.length < 2) return undefined;
		const short = (bytes[1] as number) & 0x7f;
		const start = 2 + (short === 127 ? 8 : short === 126 ? 2 : 0);
		if (bytes.length < start) return undefined;
		const length = short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short;
		if (bytes.length < start + length) return undefined;
		const payload = bytes.subarray(start, start + length);
		this.#received = bytes.subarray(start + length);
		const opcode = (bytes[0] as number) & 0x0f;
		return { opcode, payload, json: opcode === 1 ? JSON.parse(payload.toString()) : { type: "" } };
	}
}

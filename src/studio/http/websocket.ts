import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

/** As RFC 6455 has it. */
const KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const CONTINUATION = 0;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/** How many parts a message may have: each takes some 200 bytes, be it empty. Clients send parts of kilobytes. */
const MOST_PARTS = 10_000;
/** How often a client is asked whether it is there. One of which nothing was heard by the next time is not. */
const PING_MS = 15_000;
/** How long a client has to close its side. */
const CLOSE_MS = 1000;

/** Why a connection can't go on, with the code that says so. */
class FrameError extends Error {
	readonly code: number;

	constructor(code: number, message: string) {
		super(message);
		this.code = code;
	}
}

interface Frame {
	readonly isLast: boolean;
	readonly opcode: number;
	readonly payload: Buffer;
}

/** What is done with what comes. */
export interface Receiver {
	readonly mostBytes: number;
	/** A message. The next one waits until this resolves. */
	receive(text: string): Promise<void>;
	/** The connection is no more. */
	close(): void;
}

/** The key of a request for a WebSocket; `undefined` if it is for something else. */
export function readWebSocketKey({ method, headers }: IncomingMessage): string | undefined {
	const key = headers["sec-websocket-key"];
	const isWebSocket = method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
	return isWebSocket && headers["sec-websocket-version"] === "13" && /^[\w+/]{22}==$/.test(key ?? "") ? key : undefined;
}

/** The server's side of a WebSocket with text in both directions, without extensions. */
export class WebSocketConnection {
	readonly #socket: Duplex;
	#receiver: Receiver | undefined;
	/** What has come and is not a whole frame. */
	#pending: Buffer[] = [];
	#pendingBytes = 0;
	/** The parts of a message that is not whole. */
	#parts: Buffer[] = [];
	#partBytes = 0;
	/** Whether a frame is being dealt with, so that no more is read. */
	#isBusy = false;
	/** Whether the client gave a sign of life since it was last asked for one. */
	#isAlive = true;
	#isClosing = false;

	constructor(socket: Duplex, key: string) {
		this.#socket = socket;
		const accept = createHash("sha1").update(`${key}${KEY_SUFFIX}`).digest("base64");
		const headers = ["Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${accept}`];
		socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers.join("\r\n")}\r\n\r\n`);
	}

	/** @param head what came with the request for it */
	start(receiver: Receiver, head: Buffer): void {
		this.#receiver = receiver;
		const timer = setInterval(() => this.#ping(), PING_MS);
		timer.unref();
		const socket = this.#socket;
		socket.on("error", () => socket.destroy());
		socket.once("close", () => {
			clearInterval(timer);
			receiver.close();
		});
		if (head.length > 0) socket.unshift(head);
		void this.#read();
	}

	/** Resolves when there is room for more, or nobody to send it to. */
	async send(text: string): Promise<void> {
		if (!this.#isClosing && !this.#write(TEXT, Buffer.from(text))) await this.#drained();
	}

	close(code: number, reason: string): void {
		if (this.#isClosing || this.#socket.destroyed) return;
		const payload = Buffer.alloc(2 + Buffer.byteLength(reason));
		payload.writeUInt16BE(code);
		payload.write(reason, 2);
		this.#write(CLOSE, payload);
		this.#end();
	}

	#end(): void {
		this.#isClosing = true;
		this.#socket.end();
		// What still comes is not read.
		this.#socket.resume();
		setTimeout(() => this.#socket.destroy(), CLOSE_MS).unref();
	}

	/** Takes frames from the socket as fast as messages are dealt with. */
	async #read(): Promise<void> {
		try {
			for await (const chunk of this.#socket.iterator({ destroyOnReturn: false })) {
				this.#isAlive = true;
				this.#pending.push(chunk as Buffer);
				this.#pendingBytes += (chunk as Buffer).length;
				this.#isBusy = true;
				for (let frame = this.#nextFrame(); frame !== undefined && !this.#isClosing; frame = this.#nextFrame())
					await this.#take(frame);
				this.#isBusy = false;
			}
			this.#end();
		} catch (error) {
			if (error instanceof FrameError) this.close(error.code, error.message);
			else this.#socket.destroy();
		}
	}

	#nextFrame(): Frame | undefined {
		const header = this.#peek(14);
		if (header.length < 2) return undefined;
		const [first, second] = [header.readUInt8(0), header.readUInt8(1)];
		if ((first & 0x70) !== 0 || (second & 0x80) === 0) throw new FrameError(1002, "A frame is not as it must be.");
		const short = second & 0x7f;
		const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
		const start = 2 + lengthBytes + 4;
		if (header.length < start) return undefined;
		const length =
			lengthBytes === 8 ? Number(header.readBigUInt64BE(2)) : lengthBytes === 2 ? header.readUInt16BE(2) : short;
		if (this.#partBytes + length > (this.#receiver?.mostBytes ?? 0))
			throw new FrameError(1009, "The message is too large.");
		if (this.#pendingBytes < start + length) return undefined;
		const payload = Buffer.from(this.#consume(start + length).subarray(start));
		for (let i = 0; i < length; i++) payload[i] = (payload[i] as number) ^ (header[start - 4 + (i & 3)] as number);
		return { isLast: (first & 0x80) !== 0, opcode: first & 0x0f, payload };
	}

	async #take({ isLast, opcode, payload }: Frame): Promise<void> {
		if (opcode >= CLOSE) return this.#takeControl(isLast, opcode, payload);
		if (opcode === BINARY) throw new FrameError(1003, "Messages must be text.");
		if (opcode !== (this.#parts.length > 0 ? CONTINUATION : TEXT))
			throw new FrameError(1002, "A frame is out of order.");
		this.#parts.push(payload);
		this.#partBytes += payload.length;
		if (this.#parts.length > MOST_PARTS) throw new FrameError(1009, "The message has too many parts.");
		if (!isLast) return;
		const text = decode(Buffer.concat(this.#parts));
		this.#parts = [];
		this.#partBytes = 0;
		await this.#receiver?.receive(text);
	}

	async #takeControl(isLast: boolean, opcode: number, payload: Buffer): Promise<void> {
		const { length } = payload;
		if (!isLast || length > 125 || opcode > PONG || (opcode === CLOSE && length === 1))
			throw new FrameError(1002, "A frame is not as it must be.");
		// Who does not read the answers can't ask for more.
		if (opcode === PING && !this.#write(PONG, payload)) await this.#drained();
		if (opcode !== CLOSE) return;
		this.#write(CLOSE, payload.subarray(0, 2));
		this.#end();
	}

	#ping(): void {
		// An answer would not be read now. But a client must go on taking what waits for it.
		if (this.#isBusy && this.#socket.writableLength === 0) return;
		if (!this.#isAlive) this.#socket.destroy();
		this.#isAlive = false;
		if (!this.#isClosing) this.#write(PING, Buffer.alloc(0));
	}

	#write(opcode: number, payload: Buffer): boolean {
		if (this.#socket.destroyed || this.#socket.writableEnded) return true;
		const { length } = payload;
		const lengthBytes = length > 0xffff ? 8 : length > 125 ? 2 : 0;
		const frame = Buffer.alloc(2 + lengthBytes + length);
		frame.writeUInt8(0x80 | opcode, 0);
		frame.writeUInt8(lengthBytes === 8 ? 127 : lengthBytes === 2 ? 126 : length, 1);
		if (lengthBytes === 8) frame.writeBigUInt64BE(BigInt(length), 2);
		if (lengthBytes === 2) frame.writeUInt16BE(length, 2);
		payload.copy(frame, 2 + lengthBytes);
		return this.#socket.write(frame, () => {
			if (this.#isBusy) this.#isAlive = true;
		});
	}

	async #drained(): Promise<void> {
		const socket = this.#socket;
		await new Promise<void>((resolve) => {
			const done = () => {
				socket.off("drain", done);
				socket.off("close", done);
				resolve();
			};
			socket.on("drain", done);
			socket.on("close", done);
			if (socket.destroyed) done();
		});
	}

	/** The first bytes, fewer if there are not so many. */
	#peek(count: number): Buffer {
		if ((this.#pending[0]?.length ?? 0) < count && this.#pending.length > 1)
			this.#pending = [Buffer.concat(this.#pending)];
		return (this.#pending[0] ?? Buffer.alloc(0)).subarray(0, count);
	}

	#consume(count: number): Buffer {
		const all = this.#pending.length === 1 ? (this.#pending[0] as Buffer) : Buffer.concat(this.#pending);
		this.#pendingBytes -= count;
		this.#pending = this.#pendingBytes > 0 ? [all.subarray(count)] : [];
		return all.subarray(0, count);
	}
}

function decode(bytes: Buffer): string {
	try {
		return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
	} catch {
		throw new FrameError(1007, "A message is not UTF-8.");
	}
}

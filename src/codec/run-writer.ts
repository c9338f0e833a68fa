import { allocate, MOST_KEPT_BYTES } from "./byte-writer.ts";
import type { Home, Memo } from "./memo.ts";
import { SimpleWriter } from "./simple-writer.ts";

/** Room for more when the better part of a value is copied, as a share of it: as a rule, little is left to be written. */
const SLACK_AFTER_COPY = 1 / 64;
/** A buffer that grew for a large value becomes that value if no greater share of it is left unused. */
const MOST_SLACK = 1 / 4;
/** A list of fewer bytes is copied as quickly as it is continued. */
const WORTH_CONTINUING = 4096;
/** Room for what comes next that a list gets when it has grown once, and the most that it may have, as shares of it. */
const ROOM_TO_GROW = 1 / 32;
const MOST_ROOM = 1 / 16;

/**
 * Writes values parts of which stand in older ones. Members that stood one after the other do so again, as a rule, and are
 * copied together, as a run. A list that is an older one with something after it goes on in the memory of that one.
 */
export class RunWriter extends SimpleWriter {
	/** Where the run is that is to be copied. */
	#home: Home | undefined;
	#start = 0;
	#end = 0;
	/** The older value that this one is, with something after it. */
	protected continued: Home | undefined;
	/** How much of a buffer with room to grow is taken. The next value goes on from there, if it begins with all of that. */
	readonly #taken = new WeakMap<ArrayBufferLike, number>();
	/** The writer's own buffer, while it writes into one that a value goes on in. */
	#ownBytes: Uint8Array | undefined;

	/** Whether what is written comes after an older value, which has its first bytes. */
	protected get isInOlder(): boolean {
		return this.#ownBytes !== undefined;
	}

	/** Writes a member from where it stands in an older value, once it is known what comes next. */
	protected addToRun(memo: Memo): void {
		if (memo.home !== this.#home || memo.at !== this.#end) {
			this.writeRun();
			this.#home = memo.home;
			this.#start = memo.at;
			this.#end = memo.at;
		}
		memo.next = this.at + this.#end - this.#start;
		this.#end += memo.length;
	}

	/** To be called before anything else is written, and at the end. */
	protected writeRun(): void {
		const runHome = this.#home;
		const home = runHome?.bytes.deref();
		if (home === undefined) return;
		const length = this.#end - this.#start;
		this.#home = undefined;
		// The first element comes after the byte of the layout.
		if (this.at === 1 && this.#start === 1 && this.#end === home.length && length >= WORTH_CONTINUING) {
			this.continued = runHome;
			return this.#goOnAfter(home);
		}
		this.reserve(length, SLACK_AFTER_COPY);
		this.bytes.set(home.subarray(this.#start, this.#end), this.at);
		this.at += length;
	}

	/** In the memory of the older value, if nothing else goes on there, or in a copy with room. */
	#goOnAfter(older: Uint8Array): void {
		this.#ownBytes = this.bytes;
		const isLast = this.#taken.get(older.buffer) === older.length;
		this.writeTo(isLast ? wholeOf(older) : copyWithRoom(older));
		this.at = older.length;
	}

	protected override roomFor(needed: number, slack: number): number {
		return this.isInOlder ? roomToGrow(needed) : super.roomFor(needed, slack);
	}

	/** All that was written, as a value that may be gone on with. */
	protected takeBytes(): Uint8Array {
		const length = this.at;
		if (this.continued !== undefined) return this.#takeContinued(length);
		const room = this.bytes.length;
		if (room <= MOST_KEPT_BYTES || length < room * (1 - MOST_SLACK)) return this.copyWritten();
		return new Uint8Array(this.bytes.buffer, this.bytes.byteOffset, length);
	}

	#takeContinued(length: number): Uint8Array {
		const isLarge = this.bytes.length > length * (1 + MOST_ROOM);
		const bytes = isLarge ? copyWithRoom(this.bytes.subarray(0, length)) : this.bytes;
		this.#taken.set(bytes.buffer, length);
		return new Uint8Array(bytes.buffer, 0, length);
	}

	/** Leaves older values alone: what comes next is another value, or this one anew. */
	protected endRuns(): void {
		if (this.#ownBytes !== undefined) this.writeTo(this.#ownBytes);
		this.#ownBytes = undefined;
		this.#home = undefined;
		this.continued = undefined;
	}
}

function roomToGrow(length: number): number {
	return Math.ceil(length * (1 + ROOM_TO_GROW));
}

function copyWithRoom(bytes: Uint8Array): Uint8Array {
	const copy = allocate(roomToGrow(bytes.length));
	copy.set(bytes);
	return copy;
}

/** All of the memory that bytes are the beginning of. */
function wholeOf({ buffer }: Uint8Array): Uint8Array {
	return typeof Buffer === "undefined" ? new Uint8Array(buffer) : Buffer.from(buffer);
}

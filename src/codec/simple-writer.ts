import { hasToJson, isPlain } from "./built-ins.ts";
import { ByteWriter } from "./byte-writer.ts";
import { LAYOUT } from "./wire.ts";

/** An object with more entries, or longer text, is not so small that the way it is written matters. */
const MOST_ENTRIES = 16;
const MOST_TEXT = 256;

const NULL = Uint8Array.of(LAYOUT.value, 0xc0);
const EMPTY_LIST = Uint8Array.of(LAYOUT.array);

/**
 * Writes values that need none of the care that others do, since nothing in them has a class or occurs twice. Those of most
 * channels are of this kind, and so is what LangGraph says of a checkpoint.
 */
export class SimpleWriter extends ByteWriter {
	/** While it writes. A getter that itself stores something would otherwise write into the middle of the buffer. */
	protected isBusy = false;

	/** Answers nothing for any other value. */
	protected encodeSimple(value: unknown): Uint8Array | undefined {
		if (value === null) return NULL;
		if (typeof value === "object") return Array.isArray(value) ? encodeList(value) : this.#encodeObject(value);
		this.at = 0;
		this.writeByte(LAYOUT.value);
		return this.#writePrimitive(value) ? this.takeWritten() : undefined;
	}

	#encodeObject(value: object): Uint8Array | undefined {
		if (!isPlain(value)) return undefined;
		this.isBusy = true;
		try {
			return this.#writeObject(value as Record<string, unknown>) ? this.takeWritten() : undefined;
		} catch {
			// A getter failed. Whoever writes it with more care can say which.
			return undefined;
		} finally {
			this.isBusy = false;
		}
	}

	#writeObject(value: Record<string, unknown>): boolean {
		const keys = Object.keys(value);
		if (keys.length > MOST_ENTRIES || hasToJson(value)) return false;
		this.at = 0;
		this.writeByte(LAYOUT.object);
		let isInside = false;
		for (const key of keys) {
			if (!this.writeKey(key)) return false;
			const member = value[key];
			if (typeof member !== "object" || member === null) {
				if (isLong(member) || !this.#writePrimitive(member)) return false;
			} else {
				// A second one might be the same.
				if (isInside || !this.#writeEmpty(member)) return false;
				isInside = true;
			}
		}
		return true;
	}

	#writeEmpty(value: object): boolean {
		if (!isPlain(value) || Object.keys(value).length > 0 || hasToJson(value)) return false;
		this.writeMapHeader(0);
		return true;
	}

	#writePrimitive(value: unknown): boolean {
		switch (typeof value) {
			case "string":
				return this.writeText(value);
			case "number":
				this.writeNumber(value);
				return true;
			case "boolean":
				this.writeByte(value ? 0xc3 : 0xc2);
				return true;
			default:
				if (value === null) this.writeByte(0xc0);
				return value === null;
		}
	}
}

function isLong(value: unknown): boolean {
	return typeof value === "string" && value.length > MOST_TEXT;
}

function encodeList(value: unknown[]): Uint8Array | undefined {
	return value.length === 0 && Object.getPrototypeOf(value) === Array.prototype ? EMPTY_LIST : undefined;
}

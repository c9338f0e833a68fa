import { isPlain } from "./built-ins.ts";
import type { ClassRegistry } from "./class-registry.ts";
import { type Fields, givenTo, isSetLater, messageTypeOf } from "./instances.ts";
import { Home, Memo, Recorder } from "./memo.ts";

/** Members of a value that was read, with what they hold. */
export class ReadMembers {
	readonly #home: Home;
	readonly #classes: ClassRegistry;
	readonly #recorder = new Recorder();
	readonly #members: {
		readonly member: object;
		readonly at: number;
		readonly length: number;
		readonly held: number;
	}[] = [];

	/** @param bytes those that it was read from */
	constructor(bytes: Uint8Array, classes: ClassRegistry) {
		this.#home = new Home(bytes);
		this.#classes = classes;
	}

	get first(): object | undefined {
		return this.#members[0]?.member;
	}

	/** Adds a member whose bytes are between these places, if it can be remembered. */
	add(member: object, at: number, end: number): void {
		const held = this.#recorder.start();
		this.#visit(member);
		if (this.#recorder.isWhole) this.#members.push({ member, at, length: end - at, held });
		else this.#recorder.dropFrom(held);
	}

	memos(): Memo[] {
		return this.#members.map(({ member, at, length, held }, i) => {
			const memo = new Memo(member, length, this.#recorder.held, held, this.#members[i + 1]?.held);
			memo.home = this.#home;
			memo.at = at;
			return memo;
		});
	}

	/** Notes what writing the value would look at. */
	#visit(value: unknown): void {
		const recorder = this.#recorder;
		if (typeof value !== "object" || value === null || !recorder.isWhole) return;
		if (Array.isArray(value)) {
			recorder.visit(value);
			for (let i = 0; i < value.length; i++) this.#visit(value[i]);
		} else if (isPlain(value)) {
			recorder.visit(value);
			for (const key in value) this.#visit((value as Fields)[key]);
		} else if (messageTypeOf(value) === undefined || this.#classes.has(value)) recorder.isWhole = false;
		else this.#visitMessage(value as Fields);
	}

	#visitMessage(message: Fields): void {
		const given = givenTo(message);
		this.#recorder.visit(message);
		this.#recorder.visit(given);
		for (const key in given) this.#visit(key in message ? message[key] : given[key]);
		for (const key in message) if (isSetLater(key, message, given)) this.#visit(message[key]);
	}
}

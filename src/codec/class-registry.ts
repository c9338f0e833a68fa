import { CheckpointError, quote } from "../errors.ts";
import { isRecord } from "./built-ins.ts";
import { corrupt } from "./messagepack.ts";

// biome-ignore lint/suspicious/noExplicitAny: any class will do, whatever its constructor takes
type AnyClass = abstract new (...args: any[]) => any;

/** How instances of a class of the application become data and come back. */
export interface ClassHooks {
	readonly class: AnyClass;
	/** Anything that can be stored. Default: the instance's own properties. */
	encode?(instance: never): unknown;
	/** Default: an object with the class's prototype and those properties. No constructor is called. */
	decode?(data: never): unknown;
}

/** Classes by the name they are stored under. A name must stay the same as long as values stored with it are to be read. */
export type Classes = Readonly<Record<string, AnyClass | ClassHooks>>;

type Entry = { name: string; class: AnyClass; encode(instance: object): unknown; decode(data: unknown): unknown };

/** The classes of the application that stored bytes may name. */
export class ClassRegistry {
	readonly #byName = new Map<string, Entry>();
	readonly #byPrototype = new Map<unknown, Entry>();

	constructor(classes: Classes = {}) {
		for (const [name, given] of Object.entries(classes)) {
			const entry = toEntry(name, given);
			if (this.#byPrototype.has(entry.class.prototype))
				throw new CheckpointError("INVALID_OPTION", `\`classes\` has the class of ${quote(name)} twice.`);
			this.#byName.set(name, entry);
			this.#byPrototype.set(entry.class.prototype, entry);
		}
	}

	/** Whether it is an instance of exactly a registered class. */
	has(instance: object): boolean {
		return this.#byPrototype.size > 0 && this.#byPrototype.has(Object.getPrototypeOf(instance));
	}

	/** Name and data of an instance of exactly a registered class. */
	describe(instance: object): { name: string; data: unknown } | undefined {
		const entry = this.#byPrototype.get(Object.getPrototypeOf(instance));
		if (entry === undefined) return undefined;
		const data = entry.encode(instance);
		// An instance that describes itself by itself is asked for its properties.
		return { name: entry.name, data: data === instance ? copyFields(instance) : data };
	}

	make(name: unknown, data: unknown): unknown {
		const entry = this.#byName.get(name as string);
		if (entry === undefined) throw corrupt(`class ${quote(name)} is not registered: pass it in \`classes\``);
		return entry.decode(data);
	}
}

function toEntry(name: string, given: AnyClass | ClassHooks): Entry {
	const hooks: ClassHooks = typeof given === "function" ? { class: given } : given;
	if (typeof hooks?.class !== "function")
		throw new CheckpointError("INVALID_OPTION", `\`classes.${name}\` must be a class or { class, encode, decode }.`);
	const own = hooks.class as AnyClass & { fromJSON?: (data: unknown) => unknown };
	const hasJson = typeof own.fromJSON === "function" && typeof own.prototype.toJSON === "function";
	const encode = hooks.encode ?? (hasJson ? (instance: { toJSON(): unknown }) => instance.toJSON() : copyFields);
	const decode = hooks.decode ?? (hasJson ? (data: unknown) => own.fromJSON?.(data) : rebuild);
	return { name, class: hooks.class, encode: encode as Entry["encode"], decode: decode as Entry["decode"] };

	function rebuild(fields: object): object {
		if (!isRecord(fields)) throw corrupt(`an instance of class ${quote(name)} has no properties`);
		return Object.defineProperties(Object.create(hooks.class.prototype), Object.getOwnPropertyDescriptors(fields));
	}
}

function copyFields(instance: object): object {
	return { ...instance };
}

import { CheckpointError, quote } from "../errors.ts";

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

interface Entry {
	readonly name: string;
	readonly class: AnyClass;
	encode(instance: object): unknown;
	decode(data: unknown): unknown;
}

/** The classes of the application that stored bytes may name. */
export class ClassRegistry {
	readonly #byName = new Map<string, Entry>();
	readonly #byClass = new Map<unknown, Entry>();

	constructor(classes: Classes = {}) {
		for (const [name, given] of Object.entries(classes)) {
			const entry = toEntry(name, given);
			if (this.#byClass.has(entry.class))
				throw new CheckpointError("INVALID_OPTION", `\`classes\` has the class of ${quote(name)} twice.`);
			this.#byName.set(name, entry);
			this.#byClass.set(entry.class, entry);
		}
	}

	/** Name and data of an instance of exactly a registered class. */
	describe(instance: object): { name: string; data: unknown } | undefined {
		if (this.#byClass.size === 0) return undefined;
		const entry = this.#byClass.get(instance.constructor);
		return entry && { name: entry.name, data: entry.encode(instance) };
	}

	make(name: unknown, data: unknown): unknown {
		const entry = this.#byName.get(name as string);
		if (entry === undefined)
			throw new CheckpointError(
				"CORRUPT",
				`A stored value is of class ${quote(name)}, which is not registered: pass it in \`classes\`.`,
			);
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
		return Object.defineProperties(Object.create(hooks.class.prototype), Object.getOwnPropertyDescriptors(fields));
	}
}

function copyFields(instance: object): object {
	const fields = {};
	for (const key of Object.keys(instance))
		Object.defineProperty(fields, key, {
			value: (instance as Record<string, unknown>)[key],
			writable: true,
			enumerable: true,
			configurable: true,
		});
	return fields;
}

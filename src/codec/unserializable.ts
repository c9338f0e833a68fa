import { CheckpointError, quote } from "../errors.ts";
import { isUnstorable } from "./built-ins.ts";

/** A value that has no bytes. */
export class UnserializableError extends CheckpointError {
	/** Leads to the culprit from the value that was to be encoded: `[3].metadata.fn`. */
	readonly path: string;
	readonly reason: string;

	constructor(name: string, path: string, reason: string, options: ErrorOptions) {
		super("UNSERIALIZABLE", `Can't store ${name}${path}: ${reason}.`, options);
		this.path = path;
		this.reason = reason;
	}
}

/** Something that strict mode does not store. */
export class Refusal extends Error {
	readonly value: unknown;

	constructor(
		value: unknown,
		reason = `${kindOf(value)} would not come back as it was; register its class in \`classes\``,
	) {
		super(`${reason}, or turn \`strict\` off`);
		this.value = value;
	}
}

function kindOf(value: unknown): string {
	return typeof value === "object" ? `an instance of ${value?.constructor?.name ?? "a class"}` : `a ${typeof value}`;
}

/** The error that a value is refused with, by the one that was thrown while it was encoded. */
export function explain(error: unknown, root: unknown): unknown {
	if (error instanceof CheckpointError) return error;
	const path = error instanceof Refusal ? (findPath(root, error.value) ?? "") : "";
	let reason = error instanceof Error ? error.message : "something in it threw a value that is no error";
	// A class that makes new objects without end when it is asked for its JSON.
	if (error instanceof RangeError && reason.includes("call stack")) reason = "it is nested too deeply";
	return new UnserializableError("the value", path, reason, { cause: error });
}

/** The shortest way from a value to an object, function or symbol inside: `[3].metadata.fn`. */
function findPath(root: unknown, wanted: unknown): string | undefined {
	const paths = new Map<unknown, string>([[root, ""]]);
	// Members that are added on the way are visited too, in their turn.
	for (const [value, path] of paths) {
		if (value === wanted) return path;
		for (const [step, member] of membersOf(value)) if (!paths.has(member)) paths.set(member, path + step);
	}
	return undefined;
}

function membersOf(value: unknown): [step: string, member: unknown][] {
	if (typeof value !== "object" || value === null) return [];
	const members: [string, unknown][] = [];
	if (value instanceof Map)
		for (const [i, [key, item]] of [...value].entries())
			members.push([`.keys()[${i}]`, key], [`[${quote(key)}]`, item]);
	if (value instanceof Set) for (const [i, item] of [...value].entries()) members.push([`[${i}]`, item]);
	for (const key of Object.keys(value)) members.push([stepTo(value, key), (value as Record<string, unknown>)[key]]);
	if (value instanceof Error) members.push([".cause", value.cause], [".errors", (value as AggregateError).errors]);
	return members.filter(([, member]) => typeof member === "object" || isUnstorable(member));
}

function stepTo(value: object, key: string): string {
	if (Array.isArray(value)) return `[${key}]`;
	return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

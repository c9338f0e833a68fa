import { CheckpointError } from "../errors.ts";
import { findPath } from "./find-path.ts";

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

	constructor(value: unknown) {
		const kind =
			typeof value === "object" ? `an instance of ${value?.constructor?.name ?? "a class"}` : `a ${typeof value}`;
		super(`${kind} would not come back as it was; register its class in \`classes\`, or turn \`strict\` off`);
		this.value = value;
	}
}

/** What a value is refused with, by what went wrong while it was encoded. */
export function explain(error: unknown, root: unknown): unknown {
	if (error instanceof CheckpointError) return error;
	const path = error instanceof Refusal ? (findPath(root, error.value) ?? "") : "";
	return new UnserializableError("the value", path, reasonOf(error), { cause: error });
}

function reasonOf(error: unknown): string {
	if (!(error instanceof Error)) return "what it is made of threw something";
	// A class that makes new objects without end when it is asked for its JSON.
	return error instanceof RangeError && error.message.includes("call stack")
		? "it is nested too deeply"
		: error.message;
}

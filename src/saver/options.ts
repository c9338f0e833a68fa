import { CheckpointError, quote } from "../errors.ts";

const isAmount = (value: unknown) => typeof value === "number" && value >= 0;

/** What an option may be, in words, and how that is told. */
const KINDS = {
	anything: ["", () => true],
	"true or false": ["true or false", (value: unknown) => typeof value === "boolean"],
	"checkpoint id": ["a checkpoint id", (value: unknown) => typeof value === "string"],
	bytes: ["a number of bytes", isAmount],
	milliseconds: ["a number of milliseconds", isAmount],
	count: ["a whole number from 1", (value: unknown) => Number.isInteger(value) && (value as number) >= 1],
	signal: ["an AbortSignal", (value: unknown) => value instanceof AbortSignal],
} as const;

/** The options of a call: what each may be, or the values that it may have. */
export type Options = Readonly<Record<string, keyof typeof KINDS | readonly string[]>>;

/** Refuses options that nobody reads: a misspelt one would otherwise be ignored in silence. */
export function checkNames(call: string, options: object, known: readonly string[]): void {
	if (typeof options !== "object" || options === null)
		throw new CheckpointError("INVALID_OPTION", `${call} takes an object of options, got ${quote(options)}.`);
	const unknown = Object.keys(options).find((name) => !known.includes(name));
	if (unknown === undefined) return;
	const advice = `it knows ${known.join(", ")}`;
	throw new CheckpointError("INVALID_OPTION", `${call} has no option ${quote(unknown)}: ${advice}.`);
}

/** Refuses unknown options, and values that make no sense. */
export function checkOptions(call: string, options: object, known: Options): void {
	checkNames(call, options, Object.keys(known));
	for (const [name, value] of Object.entries(options)) {
		const kind = known[name] ?? "anything";
		const [words, accepts] = typeof kind === "string" ? KINDS[kind] : oneOf(kind);
		if (value !== undefined && !accepts(value))
			throw new CheckpointError("INVALID_OPTION", `\`${name}\` must be ${words}, got ${quote(value)}.`);
	}
}

function oneOf(values: readonly unknown[]) {
	return [values.map(quote).join(" or "), (value: unknown) => values.includes(value)] as const;
}

/** A limit; none means all. As with LangGraph's own savers, a part of one is one more. */
export function readLimit(limit: unknown): number {
	if (limit === undefined || limit === null) return Number.POSITIVE_INFINITY;
	if (typeof limit !== "number" || Number.isNaN(limit))
		throw new CheckpointError("INVALID_OPTION", `\`limit\` must be a number, got ${quote(limit)}.`);
	return limit > Number.MAX_SAFE_INTEGER ? Number.POSITIVE_INFINITY : Math.ceil(limit);
}

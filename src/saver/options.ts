import { CheckpointError, quote } from "../errors.ts";
import type { PruneOptions } from "./types.ts";

/** Refuses options that nobody reads: a misspelt one would otherwise be ignored in silence. */
export function checkOptions(call: string, options: object, known: readonly string[]): void {
	if (typeof options !== "object" || options === null)
		throw new CheckpointError("INVALID_OPTION", `${call} takes an object of options, got ${quote(options)}.`);
	for (const name of Object.keys(options))
		if (!known.includes(name))
			throw new CheckpointError(
				"INVALID_OPTION",
				`${call} has no option ${quote(name)}: it knows ${known.join(", ")}.`,
			);
}

/** How many checkpoints of each namespace a prune keeps; 0 for the strategy that keeps none. */
export function readKeepLast({ strategy = "keep_latest", keepLast = 1 }: PruneOptions): number {
	if (strategy === "delete") return 0;
	if (strategy !== "keep_latest")
		throw new CheckpointError(
			"INVALID_OPTION",
			`prune has no strategy ${quote(strategy)}: use "keep_latest" or "delete".`,
		);
	if (!Number.isInteger(keepLast) || keepLast < 1)
		throw new CheckpointError("INVALID_OPTION", `\`keepLast\` must be a whole number from 1, got ${quote(keepLast)}.`);
	return keepLast;
}

export function checkSignal(signal: unknown): void {
	if (signal !== undefined && !(signal instanceof AbortSignal))
		throw new CheckpointError("INVALID_OPTION", `\`signal\` must be an AbortSignal, got ${quote(signal)}.`);
}

/** What is done about puts that would start a branch. */
export function readOnConflict(value: unknown = "fork"): "fork" | "reject" {
	if (value !== "fork" && value !== "reject")
		throw new CheckpointError("INVALID_OPTION", `\`onConflict\` must be "fork" or "reject", got ${quote(value)}.`);
	return value;
}

/** A limit; none means all. As with LangGraph's own savers, a part of one is one more. */
export function readLimit(limit: unknown): number {
	if (limit === undefined || limit === null) return Number.POSITIVE_INFINITY;
	if (typeof limit !== "number" || Number.isNaN(limit))
		throw new CheckpointError("INVALID_OPTION", `\`limit\` must be a number, got ${quote(limit)}.`);
	return limit > Number.MAX_SAFE_INTEGER ? Number.POSITIVE_INFINITY : Math.ceil(limit);
}

/** How much a saver keeps in memory of what it stored last, if nothing else is asked for. */
const DEFAULT_CACHE_BYTES = 32 * 1024 * 1024;

export function readCacheBytes(cacheBytes: number = DEFAULT_CACHE_BYTES): number {
	if (typeof cacheBytes === "number" && cacheBytes >= 0) return cacheBytes;
	throw new CheckpointError("INVALID_OPTION", `\`cacheBytes\` must be a number of bytes, got ${quote(cacheBytes)}.`);
}

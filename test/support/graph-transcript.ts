import type { CheckpointPendingWrite, CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { type Canonical, canonical } from "./graph-canonical.ts";
import { canonicalTuple } from "./graph-tuple.ts";

/** What a scenario saw, in order: each entry a label and a canonical value. */
export type Transcript = [label: string, value: Canonical][];

/** Ids that core draws anew in every run: uuids of any version, and the hashes that name interrupts. */
const ID = /[0-9a-f]{6,8}-(?:[0-9a-f]{4}|1-[0-9a-f]{4})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b/g;

const TIME_KEYS = new Set(["ts", "createdAt", "timestamp"]);

const masked = (text: string) => text.replace(ID, "#");

const byText = (left: string, right: string) => (left < right ? -1 : left > right ? 1 : 0);

/**
 * Renames the ids of one run to `#1`, `#2`, … in the order of their first appearance and drops times, so that the
 * transcripts of two runs of one scenario are equal if and only if the runs looked the same.
 */
export function withoutIds(transcript: Transcript): Transcript {
	const names = new Map<string, string>();
	const rename = (text: string) =>
		text.replace(ID, (id) => {
			const name = names.get(id) ?? `#${names.size + 1}`;
			names.set(id, name);
			return name;
		});
	const walk = (value: Canonical): Canonical => {
		if (typeof value === "string") return rename(value);
		if (typeof value !== "object" || value === null) return value;
		return Array.isArray(value)
			? value.map(walk)
			: Object.fromEntries(
					fieldsOf(value).map(([key, inner]) => [rename(key), TIME_KEYS.has(key) ? "time" : walk(inner)]),
				);
	};
	return transcript.map(([label, value]) => [label, walk(value)]);
}

/** Fields in an order that does not depend on the ids within their names; they come sorted by name. */
function fieldsOf(value: { [key: string]: Canonical }): [string, Canonical][] {
	const fields = Object.entries(value);
	if (!fields.some(([key]) => key !== masked(key))) return fields;
	return fields.sort(([left], [right]) => byText(masked(left), masked(right)) || byText(left, right));
}

/** The value's own text with ids and times left out: the same in every run, so fit to sort by. */
const stableText = (value: unknown): string =>
	JSON.stringify(value, (key, inner) =>
		TIME_KEYS.has(key) ? "time" : typeof inner === "string" ? masked(inner) : inner,
	);

const byStableText = (left: unknown, right: unknown) => byText(stableText(left), stableText(right));

function groups<T>(items: readonly T[], keyOf: (item: T) => string): T[][] {
	const found = new Map<string, T[]>();
	for (const item of items) found.set(keyOf(item), [...(found.get(keyOf(item)) ?? []), item]);
	return [...found.values()];
}

/** Tuples of one thread in canonical form, in an order that is the same in every run although ids are not. */
export function inStableOrder(tuples: readonly CheckpointTuple[]): Canonical[] {
	const oldestFirst = tuples.toSorted((left, right) => byText(left.checkpoint.id, right.checkpoint.id));
	const namespaces = groups(oldestFirst, (tuple) => `${tuple.config.configurable?.checkpoint_ns}`);
	return namespaces
		.map((inside) => inside.map((tuple) => canonicalTuple(tuple, writesInStableOrder)))
		.sort(byStableText)
		.flat();
}

/** Tasks without a path are ordered by their ids, which differ from run to run. Here they are ordered by what they wrote. */
function writesInStableOrder(pendingWrites: CheckpointPendingWrite[]): CheckpointPendingWrite[] {
	const tasks = groups(pendingWrites, ([taskId]) => taskId);
	return tasks.sort((left, right) => byStableText(canonical(left), canonical(right))).flat();
}

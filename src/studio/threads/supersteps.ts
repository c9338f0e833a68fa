import { readCommand } from "../graphs/command.ts";
import type { Superstep } from "../graphs/graph.ts";
import { Fields, isRecord, MOST_ITEMS } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";

/** The updates that a new thread starts with. */
export function readSupersteps(list: unknown[]): Superstep[] {
	const supersteps = list.map((superstep) => ({ updates: (readList(superstep, "updates") ?? []).map(readUpdate) }));
	const count = supersteps.reduce((sum, { updates }) => sum + updates.length, 0);
	if (count <= MOST_ITEMS) return supersteps;
	throw new HttpError(400, `\`supersteps\` must have at most ${MOST_ITEMS} updates in all, got ${count}.`);
}

function readUpdate(update: unknown): Superstep["updates"][number] {
	const fields = asFields(update);
	const command = fields.record("command");
	return {
		values: command === undefined ? fields.get("values") : readCommand(command),
		asNode: fields.mustText("as_node"),
	};
}

function readList(value: unknown, name: string): unknown[] | undefined {
	return asFields(value).list(name);
}

function asFields(value: unknown): Fields {
	if (!isRecord(value)) throw new HttpError(400, "`supersteps` must be an array of objects with `updates`.");
	return new Fields(value);
}

import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { CheckpointError, quote } from "../errors.ts";
import { ARGUMENTS } from "./format.ts";
import { type Fields, makeInstance } from "./instances.ts";

/**
 * Reads what the serializer of LangGraph's own savers wrote: the bytes and the type that it gave them.
 *
 * Messages come back as messages. Any other record that names a class stays the data it is: nothing outside the closed
 * set of this package is built, and no secret is looked up.
 *
 * @example
 * ```ts
 * const row = db.prepare("SELECT type, checkpoint FROM checkpoints LIMIT 1").get();
 * const checkpoint = decodeOfficial(row.type, row.checkpoint);
 * ```
 */
export function decodeOfficial(type: string, data: Uint8Array | string): unknown {
	if (type === "bytes") return typeof data === "string" ? new TextEncoder().encode(data) : new Uint8Array(data);
	if (type !== "json") throw unreadable(`it has no type ${quote(type)}, only "json" and "bytes"`);
	const text = typeof data === "string" ? data : new TextDecoder().decode(data);
	try {
		return revive(JSON.parse(text));
	} catch (cause) {
		throw unreadable((cause as Error).message, { cause });
	}
}

function unreadable(reason: string, options?: ErrorOptions): CheckpointError {
	return new CheckpointError("CORRUPT", `A value of LangGraph's serializer can't be read: ${reason}.`, options);
}

function revive(value: unknown): unknown {
	if (typeof value !== "object" || value === null) return value;
	if (Array.isArray(value)) return value.map(revive);
	const { __lc_escaped__: escaped } = value as Fields;
	// LangChain wraps data that looks like a record of its own, so that it is left alone.
	if (escaped !== undefined && Object.keys(value).length === 1) return escaped;
	const fields: Fields = Object.fromEntries(Object.entries(value).map(([key, item]) => [key, revive(item)]));
	if (fields.lc === 2) return reviveRecord(fields);
	if (fields.lc === 1 && fields.type === "constructor") return reviveLangChain(fields) ?? fields;
	return fields;
}

/** Records of the serializer itself. One that does not look as it writes them is somebody's data. */
function reviveRecord(record: Fields): unknown {
	const { type, id, args } = record;
	if (type === "undefined") return undefined;
	if (type === "delta_snapshot" && Object.hasOwn(record, "value")) return new DeltaSnapshot(record.value);
	if (type !== "constructor" || !Array.isArray(id) || id.length !== 1 || !Array.isArray(args)) return record;
	const [first, second] = args as unknown[];
	if (id[0] === "Set" && Array.isArray(first)) return new Set(first);
	if (id[0] === "Map" && Array.isArray(first) && first.every((entry) => Array.isArray(entry) && entry.length === 2))
		return new Map(first as [unknown, unknown][]);
	if (id[0] === "Error" && typeof first === "string") return new Error(first);
	if (id[0] === "Uint8Array" && Array.isArray(first)) return Uint8Array.from(first as number[]);
	if (id[0] === "RegExp" && typeof first === "string" && typeof second === "string") return new RegExp(first, second);
	return record;
}

function reviveLangChain({ id, kwargs }: Fields): object | undefined {
	if (!Array.isArray(id) || id[0] !== "langchain_core" || typeof kwargs !== "object" || kwargs === null)
		return undefined;
	const fields: Fields = {};
	// LangChain spells most arguments of messages the same in JSON, and turns all others into snake case.
	for (const [key, value] of Object.entries(kwargs)) fields[ARGUMENTS.includes(key) ? key : toCamelCase(key)] = value;
	return makeInstance(id.at(-1), fields);
}

function toCamelCase(key: string): string {
	return key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

import { quote } from "../../errors.ts";
import { HttpError } from "./http-error.ts";
import { measure } from "./measure.ts";

/** How many items a list in a request may have, and a page of an answer. The work for each item is small, but not nothing. */
export const MOST_ITEMS = 1000;

/** A JSON object. */
export type Json = Record<string, unknown>;

/** The fields of a request, each read as what it must be. A field that is null counts as absent. */
export class Fields {
	readonly #values: Json;

	constructor(value: unknown) {
		if (value !== undefined && !isRecord(value))
			throw new HttpError(400, `The request body must be a JSON object, got ${quote(value)}.`);
		this.#values = value ?? {};
	}

	get(name: string): unknown {
		return Object.hasOwn(this.#values, name) ? (this.#values[name] ?? undefined) : undefined;
	}

	/** Whether the field is there, be it null. */
	has(name: string): boolean {
		return Object.hasOwn(this.#values, name);
	}

	text(name: string): string | undefined {
		return this.#read(name, "a string", (value): value is string => typeof value === "string");
	}

	mustText(name: string): string {
		const text = this.text(name);
		if (text === undefined) throw new HttpError(400, `\`${name}\` is required and must be a string.`);
		return text;
	}

	flag(name: string): boolean | undefined {
		return this.#read(name, "true or false", (value): value is boolean => typeof value === "boolean");
	}

	record(name: string): Json | undefined {
		return this.#read(name, "an object", isRecord);
	}

	/** An object to be looked for in others. */
	filter(name: string): Json | undefined {
		const filter = this.record(name);
		if (filter === undefined || measure(filter).values <= MOST_ITEMS) return filter;
		throw new HttpError(400, `\`${name}\` must have at most ${MOST_ITEMS} values in all.`);
	}

	integer(name: string, least: number, most: number): number | undefined {
		const isFine = (value: unknown): value is number =>
			Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
		return this.#read(name, `a whole number from ${least} to ${most}`, isFine);
	}

	number(name: string): number | undefined {
		return this.#read(name, "a number", (value): value is number => typeof value === "number");
	}

	list(name: string): unknown[] | undefined {
		return this.#read(name, `an array of at most ${MOST_ITEMS}`, isList);
	}

	texts(name: string): string[] | undefined {
		const isFine = (value: unknown): value is string[] =>
			isList(value) && value.every((item) => typeof item === "string");
		return this.#read(name, `an array of at most ${MOST_ITEMS} strings`, isFine);
	}

	choice<Choice extends string>(name: string, choices: readonly Choice[]): Choice | undefined {
		const isFine = (value: unknown): value is Choice => choices.includes(value as Choice);
		return this.#read(name, `one of ${choices.join(", ")}`, isFine);
	}

	#read<T>(name: string, kind: string, isFine: (value: unknown) => value is T): T | undefined {
		const value = this.get(name);
		if (value === undefined) return undefined;
		if (isFine(value)) return value;
		throw new HttpError(400, `\`${name}\` must be ${kind}, got ${quote(value)}.`);
	}
}

export function isRecord(value: unknown): value is Json {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isList(value: unknown): value is unknown[] {
	return Array.isArray(value) && value.length <= MOST_ITEMS;
}

/** A flag in a query string, in the spellings that clients use. */
export function readFlag(query: URLSearchParams, name: string): boolean {
	return ["true", "1", "yes"].includes(query.get(name)?.toLowerCase() ?? "");
}

/** A whole number in a query string. */
export function readInteger(query: URLSearchParams, name: string, fallback: number): number {
	const text = query.get(name);
	if (text === null || text === "") return fallback;
	const value = Number(text);
	if (Number.isInteger(value) && value >= 0) return value;
	throw new HttpError(400, `\`${name}\` must be a whole number from 0, got ${quote(text)}.`);
}

import { createHash } from "node:crypto";
import { fromText, isBytes, type Kind } from "./rows.ts";

/** A row's columns as the server wrote them, in order. */
export type SqlRow = (string | null)[];

/** Values of a statement's parameters, by name. A missing one is NULL, others than the statement's are ignored. */
export type Values = Readonly<Record<string, unknown>>;

/**
 * Turns `$thread` and the like into the numbers that PostgreSQL wants, except in quoted names. The statement's name is
 * the same for the same text only, so that a connection that several programs share can't mix them up.
 */
export function compile(sql: string): { name: string; text: string; parameters: string[] } {
	const parameters: string[] = [];
	const text = sql.replaceAll(/"[^"]*"|\$([a-z]\w*)/gi, (name, parameter: string | undefined) => {
		if (parameter === undefined) return name;
		if (!parameters.includes(parameter)) parameters.push(parameter);
		return `$${parameters.indexOf(parameter) + 1}`;
	});
	return { name: `delta_${createHash("sha256").update(text).digest("hex").slice(0, 24)}`, text, parameters };
}

/** A statement that reads, and how its answer is understood. */
export interface Question<Answer> {
	readonly sql: string;
	readonly read: (rows: SqlRow[]) => Answer;
}

/** Rows of one kind: what follows FROM, and the column that they are ordered by. */
type Part = readonly [kind: Kind, from: string, order?: string];

/**
 * Asks for rows of several kinds at once, so that they take one round trip and are all of one moment: the part and place
 * of a row, its properties as JSON, and its bytes in digits, because how the server writes them by itself is a setting.
 *
 * @param before what the parts name
 */
export function ask<Answer>(parts: Readonly<Record<keyof Answer, Part>>, before = ""): Question<Answer> {
	const queries = Object.entries<Part>(parts).map(([part, [kind, from, order = "0"]]) => {
		const pairs = kind.filter((column) => !isBytes(column)).map(({ name, property }) => `'${property}', ${name}`);
		const bytes = kind.find(isBytes);
		const digits = bytes ? `'${bytes.property}', encode(${bytes.name}, 'hex')` : "NULL, NULL";
		return `SELECT '${part}', ${order}, json_build_object(${pairs.join()}), ${digits} FROM ${from}`;
	});
	const read = (rows: SqlRow[]) => {
		const answer = Object.fromEntries(Object.keys(parts).map((part) => [part, [] as object[]]));
		// SQL promises no order for the rows of a union.
		rows.sort((a, b) => Number(a[1]) - Number(b[1]));
		for (const [part, , json, bytes, digits] of rows as string[][]) {
			const row = toObject(json as string);
			if (bytes) row[bytes] = Buffer.from(digits as string, "hex");
			answer[part as string]?.push(row);
		}
		return answer as Answer;
	};
	return { sql: `${before} ${queries.join(" UNION ALL ")}`, read };
}

function toObject(json: string): Record<string, unknown> {
	const row = JSON.parse(json, json.includes("\\u0001") ? decode : undefined);
	for (const property in row) row[property] ??= undefined;
	return row;
}

function decode(_: string, value: unknown): unknown {
	return typeof value === "string" ? fromText(value) : value;
}

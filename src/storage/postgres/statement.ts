import { createHash } from "node:crypto";
import type { Column, Columns, Kind } from "./rows.ts";

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
type Part<Row> = readonly [kind: Kind<Row>, from: string, order?: string];

/**
 * Asks for rows of several kinds at once, so that they take one round trip and are all of one moment. Each row begins with
 * the name of its part. Columns are text, in which they are sent in any case: so rows of all kinds fit into one result.
 *
 * @param before what the parts name
 */
export function ask<Rows extends Record<string, object>>(
	parts: { readonly [Name in keyof Rows]: Part<Rows[Name]> },
	before = "",
): Question<{ [Name in keyof Rows]: Rows[Name][] }> {
	const all = Object.entries<Part<object>>(parts).map(([name, [kind, from, order]]) => {
		const columns = Object.entries(kind as Columns);
		const selects = [`'${name}'`, ...columns.map(([, { select }]) => select), ...(order ? [`${order}::text`] : [])];
		return { name, columns, selects, from, order };
	});
	const width = Math.max(...all.map(({ selects }) => selects.length));
	const queries = all.map(({ selects, from }) => {
		const padding = Array<string>(width - selects.length).fill("NULL");
		return `SELECT ${[...selects, ...padding].join()} FROM ${from}`;
	});
	const read = (rows: SqlRow[]) => {
		const kinds = all.map(({ name, columns, order }) => {
			const own = rows.filter(([part]) => part === name);
			// SQL promises no order for the rows of a union.
			const place = columns.length + 1;
			if (order) own.sort((a, b) => Number(a[place]) - Number(b[place]));
			return [name, own.map((row) => toObject(columns, row))];
		});
		return Object.fromEntries(kinds);
	};
	return { sql: `${before} ${queries.join(" UNION ALL ")}`, read };
}

function toObject(columns: readonly (readonly [property: string, column: Column<unknown>])[], row: SqlRow): object {
	const object: Record<string, unknown> = {};
	let at = 0;
	for (const [property, { read }] of columns) {
		const text = row[++at];
		object[property] = text === null || text === undefined ? undefined : read(text);
	}
	return object;
}

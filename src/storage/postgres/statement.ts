import { createHash } from "node:crypto";

/** A row's columns as the server wrote them, in order. */
export type SqlRow = (string | null | undefined)[];

/** One SQL statement whose parameters have names. */
export interface Statement {
	/** The same for the same text only, so that a connection that several programs share can't mix them up. */
	readonly name: string;
	readonly text: string;
	/** Names of the parameters, in the order of their numbers. */
	readonly parameters: readonly string[];
}

/** Values of a statement's parameters, by name. A missing one is NULL, others than the statement's are ignored. */
export type Values = Readonly<Record<string, unknown>>;

/** Turns `$thread` and the like into the numbers that PostgreSQL wants, except in quoted names. */
export function compile(sql: string): Statement {
	const parameters: string[] = [];
	const text = sql.replaceAll(/"[^"]*"|\$([a-z]\w*)/gi, (name, parameter: string | undefined) => {
		if (parameter === undefined) return name;
		if (!parameters.includes(parameter)) parameters.push(parameter);
		return `$${parameters.indexOf(parameter) + 1}`;
	});
	return { name: `delta_${createHash("sha256").update(text).digest("hex").slice(0, 24)}`, text, parameters };
}

/** Rows of one kind in a {@link union}: its name, the columns, and what follows FROM. */
export type Part = readonly [kind: string, columns: readonly string[], from: string];

/**
 * Rows of several kinds in one answer, so that they take one round trip and are all of one moment. Each row begins with
 * its kind. Columns are cast to text, in which they are sent in any case: so rows of all kinds fit into one result.
 */
export function union(...parts: readonly Part[]): string {
	const width = Math.max(...parts.map(([, columns]) => columns.length));
	const selects = parts.map(([kind, columns, from]) => {
		const padding = Array<string>(width - columns.length).fill("NULL");
		const texts = columns.map((column) => `${column}::text`);
		return `SELECT '${kind}', ${[...texts, ...padding].join(", ")} FROM ${from}`;
	});
	return selects.join("\nUNION ALL ");
}

/** Reads the answer of a {@link union}: the rows of each kind, without it. */
export function splitUnion(rows: readonly SqlRow[]): (kind: string) => SqlRow[] {
	const kinds = new Map<unknown, SqlRow[]>();
	for (const [kind, ...row] of rows) {
		const others = kinds.get(kind);
		if (others === undefined) kinds.set(kind, [row]);
		else others.push(row);
	}
	return (kind) => kinds.get(kind) ?? [];
}

import { createHash } from "node:crypto";

/** One SQL statement whose parameters have names. */
export interface Statement {
	/** The same for the same text only, so that a connection that several programs share can't mix them up. */
	readonly name: string;
	readonly text: string;
	/** Names of the parameters, in the order of their numbers. */
	readonly parameters: readonly string[];
}

/** What a statement's parameters stand for. A statement may leave some out. */
export type Values = Readonly<Record<string, unknown>>;

/** Turns `$thread` and the like into the numbers that PostgreSQL wants. */
export function compile(sql: string): Statement {
	const parameters: string[] = [];
	const text = sql.replaceAll(/\$([a-z]\w*)/gi, (_, parameter: string) => {
		if (!parameters.includes(parameter)) parameters.push(parameter);
		return `$${parameters.indexOf(parameter) + 1}`;
	});
	return { name: `delta_${createHash("sha256").update(text).digest("hex").slice(0, 24)}`, text, parameters };
}

import { quote } from "../errors.ts";
import { isUnstorable } from "./built-ins.ts";

/** The shortest way from a value to an object, function or symbol inside: `[3].metadata.fn`. */
export function findPath(root: unknown, wanted: unknown): string | undefined {
	const paths = new Map<unknown, string>([[root, ""]]);
	// What is added on the way is visited too, in its turn.
	for (const [value, path] of paths) {
		if (value === wanted) return path;
		for (const [step, member] of membersOf(value)) if (!paths.has(member)) paths.set(member, path + step);
	}
	return undefined;
}

function membersOf(value: unknown): [step: string, member: unknown][] {
	if (typeof value !== "object" || value === null) return [];
	const members: [string, unknown][] = [];
	if (value instanceof Map)
		for (const [i, [key, item]] of [...value].entries())
			members.push([`.keys()[${i}]`, key], [`[${quote(key)}]`, item]);
	if (value instanceof Set) for (const [i, item] of [...value].entries()) members.push([`[${i}]`, item]);
	for (const key of Object.keys(value)) members.push([stepTo(value, key), (value as Record<string, unknown>)[key]]);
	if (value instanceof Error) members.push([".cause", value.cause], [".errors", (value as AggregateError).errors]);
	return members.filter(([, member]) => typeof member === "object" || isUnstorable(member));
}

function stepTo(value: object, key: string): string {
	if (Array.isArray(value)) return `[${key}]`;
	return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

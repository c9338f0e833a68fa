import type { Values } from "./statement.ts";

/** A column, and the property of an object that has its value: `runId` is in `run_id`. NULL is `undefined`. */
interface Column {
	readonly name: string;
	readonly type: string | undefined;
	readonly property: string;
}

/** A kind of rows, of whose columns one may be bytes. */
export type Kind = readonly Column[];

export function isBytes({ type }: Column): boolean {
	return type === "bytea";
}

/** @param definitions columns, with their types if such rows are sent or have bytes */
export function kind(definitions: string): Kind {
	return definitions.split(", ").map((definition) => {
		const [name = "", type] = definition.split(" ");
		return { name, type, property: name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()) };
	});
}

// What tables have of each kind of rows, and what is read: the thread's id is only in its own row.

const THREAD_ID = kind("thread_id text");
export const CHECKPOINT_KEY = kind("thread_id text, ns text, id text");
export const CHECKPOINT = kind(
	"ns text, id text, parent_id text, run_id text, source text, step bigint, blobs bigint[], head bytea",
);
export const FOUND_CHECKPOINT = [...kind("thread_id, stamp"), ...CHECKPOINT];

const OWN_WRITE_KEY = kind("ns text, id text, task_id text, generation integer, idx bigint");
/** One that is removed; an orphan stays when its checkpoint has come. */
export const OLD_WRITE = [...OWN_WRITE_KEY, ...kind("orphan boolean")];
export const WRITE_KEY = [...THREAD_ID, ...OWN_WRITE_KEY];
const WRITE_CONTENT = "task_path text, channel text, run_id text, actor bigint, type text, blob bigint, value bytea";
export const WRITE = [...OWN_WRITE_KEY, ...kind(WRITE_CONTENT)];
/** With a `NewWrite`'s conflict, which is stored nowhere. */
export const NEW_WRITE = [...WRITE, ...kind("conflict text")];
export const FOUND_WRITE = [...THREAD_ID, ...WRITE];

export const BASE = kind("ns text, id text, channel text, data bytea");
export const FOUND_BASE = [...THREAD_ID, ...BASE];

export const BLOB = kind("id bigint, base bigint, source bigint, type text, data bytea");

export function columnsOf(kind: Kind): string[] {
	return kind.map(({ name }) => name);
}

/** Rows for a statement that has {@link given} of the same name and kind: as JSON, and the bytes of all of them. */
export function send(name: string, kind: Kind, rows: readonly object[]): Values {
	const bytes: Uint8Array[] = [];
	let start = 1;
	const items = rows.map((row, place) => {
		const item: Record<string, unknown> = { place };
		for (const { name, property } of kind) {
			const value = (row as Values)[property];
			if (value instanceof Uint8Array) {
				bytes.push(value);
				Object.assign(item, { start, size: value.length });
				start += value.length;
			} else item[name] = typeof value === "string" ? toText(value) : value;
		}
		return item;
	});
	return { [name]: JSON.stringify(items), [`${name}_bytes`]: Buffer.concat(bytes) };
}

/** Rows that were {@link send sent}, and the place of each. */
export function given(name: string, kind: Kind): string {
	const columns = kind.map((column) =>
		isBytes(column) ? `substring($${name}_bytes::bytea, start, size) AS ${column.name}` : column.name,
	);
	const sent = kind.filter((column) => !isBytes(column)).map(({ name, type }) => `${name} ${type}`);
	return `(SELECT ${columns.join()}, place FROM json_to_recordset($${name}::json)
		AS r (${sent.join()}, place integer, start integer, size integer)) ${name}`;
}

/**
 * Text as a column of type text can hold it. PostgreSQL knows no U+0000, so that becomes U+0001 U+0001 and U+0001
 * becomes U+0001 U+0002: different texts stay different, and their order stays the same.
 */
export function toText(value: string): string {
	if (!value.includes("\u0001") && !value.includes("\0")) return value;
	return value.replaceAll("\u0001", "\u0001\u0002").replaceAll("\0", "\u0001\u0001");
}

export function fromText(stored: string): string {
	if (!stored.includes("\u0001")) return stored;
	return stored.replaceAll("\u0001\u0001", "\0").replaceAll("\u0001\u0002", "\u0001");
}

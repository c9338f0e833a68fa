import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedBlob,
	ListedCheckpoint,
	NewWrite,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "../storage.ts";
import type { Values } from "./statement.ts";

/** A column, and what a value of it is here. NULL is `undefined`. */
export interface Column<Value> {
	readonly name: string;
	readonly type: "text" | "bigint" | "bigint[]" | "bytea";
	/** How it is asked for, to be read as text. */
	readonly select: string;
	read(text: string): Value;
	/** As text for the server, or as bytes. */
	send(value: Value): string | Uint8Array | undefined;
}

/** A kind of rows: in which column each property of an object is. */
export type Kind<Row> = { readonly [Property in keyof Row]-?: Column<NonNullable<Row[Property]>> };

/** Any kind of rows. */
export type Columns = Readonly<Record<string, Column<unknown>>>;

export function text(name: string): Column<string> {
	return { name, type: "text", select: name, read: fromText, send: toText };
}

export function number(name: string): Column<number> {
	return { name, type: "bigint", select: `${name}::text`, read: Number, send: String };
}

/** Bytes are asked for in digits: how the server would write them by itself is a setting. */
function bytes(name: string): Column<Uint8Array> {
	const select = `encode(${name}, 'hex')`;
	return { name, type: "bytea", select, read: (digits) => Buffer.from(digits, "hex"), send: (value) => value };
}

/** The server writes arrays as `{1,2}`. An empty one is stored as NULL. */
const BLOBS: Column<readonly number[]> = {
	name: "blobs",
	type: "bigint[]",
	select: "coalesce(blobs, '{}')::text",
	read: (list) => JSON.parse(`[${list.slice(1, -1)}]`),
	send: (list) => (list.length > 0 ? `{${list.join()}}` : undefined),
};

// What tables have of each kind of rows, and what is read: the thread's id is only in its own row.

const THREAD_ID = { threadId: text("thread_id") };

export const CHECKPOINT_KEY: Kind<CheckpointKey> = { ...THREAD_ID, ns: text("ns"), id: text("id") };
export const LISTED_CHECKPOINT: Kind<ListedCheckpoint> = { ...CHECKPOINT_KEY, parentId: text("parent") };
export const CHECKPOINT: Kind<Omit<CheckpointRow, "threadId">> = {
	ns: text("ns"),
	id: text("id"),
	parentId: text("parent"),
	runId: text("run_id"),
	source: text("source"),
	step: number("step"),
	blobs: BLOBS,
	head: bytes("head"),
};
export const FOUND_CHECKPOINT: Kind<FoundCheckpoint> = { ...THREAD_ID, stamp: number("stamp"), ...CHECKPOINT };

const OWN_WRITE_KEY: Kind<Omit<WriteKey, "threadId">> = {
	ns: text("ns"),
	id: text("checkpoint"),
	taskId: text("task"),
	generation: number("generation"),
	idx: number("idx"),
};
/** One that is removed; `orphan` is `yes` if it stays when its checkpoint has come. */
export const OLD_WRITE = { ...OWN_WRITE_KEY, orphan: text("orphan") };
export const WRITE_KEY: Kind<WriteKey> = { ...THREAD_ID, ...OWN_WRITE_KEY };
export const WRITE: Kind<Omit<WriteRow, "threadId">> = {
	...OWN_WRITE_KEY,
	taskPath: text("task_path"),
	channel: text("channel"),
	runId: text("run_id"),
	actor: number("actor"),
	type: text("type"),
	blob: number("blob"),
	value: bytes("value"),
};
/** With a {@link NewWrite}'s conflict, which is stored nowhere. */
export const NEW_WRITE = { ...WRITE, conflict: text("conflict") };
export const FOUND_WRITE: Kind<WriteRow> = { ...THREAD_ID, ...WRITE };

export const BASE: Kind<Omit<DeltaBaseRow, "threadId">> = {
	ns: text("ns"),
	id: text("checkpoint"),
	channel: text("channel"),
	data: bytes("data"),
};
export const FOUND_BASE: Kind<DeltaBaseRow> = { ...THREAD_ID, ...BASE };

const LINKS = { id: number("id"), base: number("base"), source: number("source") };
export const BLOB: Kind<BlobRow> = { ...LINKS, type: text("type"), data: bytes("data") };
export const LISTED_BLOB: Kind<ListedBlob> = { ...LINKS, bytes: number("octet_length(data)") };

export const NAMED = { id: number("id") };
export const WRITTEN = { ns: text("ns"), channel: text("channel") };

export const THREAD: Kind<ThreadRow> = {
	...THREAD_ID,
	family: number("family"),
	stamp: number("stamp"),
	createdAt: number("created_at"),
	updatedAt: number("updated_at"),
	checkpoints: number("checkpoints"),
	newest: text("newest"),
};

export function columnsOf(kind: Columns): string[] {
	return Object.values(kind).map(({ name }) => name);
}

/** Rows for a statement that has {@link given} of the same name and kind: an array for each column. */
export function send<Row>(name: string, kind: Kind<Row>, rows: readonly NoInfer<Partial<Row>>[]): Values {
	const columns = Object.entries(kind as Columns).map(([property, { type, send }]) => {
		const items = rows.map((row) => {
			const value = (row as Values)[property];
			return value === undefined ? undefined : send(value);
		});
		return [`${name}_${property}`, toArray(type === "bytea" ? BYTES : TEXT, items)];
	});
	return Object.fromEntries(columns);
}

/**
 * Rows that were {@link send sent}, and the place of each. The planner is not told how many they are: it would make a
 * new plan for each call to fit that.
 */
export function given(name: string, kind: Columns): string {
	const columns = Object.entries(kind);
	const arrays = columns.map(([key, { type }]) => `(SELECT $${name}_${key}::${type === "bytea" ? type : "text"}[])`);
	const typed = columns.map(([, { name, type }]) => `${name}::${type}`);
	return `(SELECT ${typed.join()}, place FROM unnest(${arrays.join()})
		WITH ORDINALITY AS r (${columnsOf(kind).join()}, place)) ${name}`;
}

/** Numbers of types. */
const BYTES = 17;
const TEXT = 25;

/**
 * An array as the server receives it in binary. As text, bytes would be twice as long, and a setting would say whether
 * there can be NULL.
 */
function toArray(type: number, items: readonly (string | Uint8Array | undefined)[]): Buffer {
	const parts: Uint8Array[] = [int32s(1, 0, type, items.length, 1)];
	for (const item of items) {
		const bytes = typeof item === "string" ? Buffer.from(item) : item;
		parts.push(int32s(bytes?.length ?? -1));
		if (bytes !== undefined) parts.push(bytes);
	}
	return Buffer.concat(parts);
}

function int32s(...numbers: number[]): Buffer {
	const bytes = Buffer.allocUnsafe(4 * numbers.length);
	for (const [at, number] of numbers.entries()) bytes.writeInt32BE(number, 4 * at);
	return bytes;
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

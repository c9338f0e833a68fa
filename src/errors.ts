/** Every code a {@link CheckpointError} can carry. A code never changes its meaning. */
export type CheckpointErrorCode =
	/** A config lacks something the call needs, or holds something of the wrong type. */
	| "INVALID_CONFIG"
	/** An option is unknown, or its value is not one of those allowed. */
	| "INVALID_OPTION"
	/** `copyThread` was asked to copy into a thread of which something is stored already. */
	| "THREAD_EXISTS"
	/** A checkpoint named in a call is not stored. */
	| "NOT_FOUND"
	/** A value can't be turned into bytes. */
	| "UNSERIALIZABLE"
	/** Stored bytes can't be turned back into what was put. */
	| "CORRUPT"
	/**
	 * A row is encrypted, and the key for it was not given or is not the right one. Also refuses to store beside such rows, or
	 * to encrypt beside rows in clear without `migrate`.
	 */
	| "WRONG_KEY"
	/** The file is not a database of this package. */
	| "FOREIGN_DATABASE"
	/** The file was written by the official `@langchain/langgraph-checkpoint-sqlite`. */
	| "OFFICIAL_DATABASE"
	/** The database was written by a newer version of this package. */
	| "NEWER_FORMAT"
	/** The database can't be written to. */
	| "READ_ONLY"
	/** Another process held the database for longer than the busy timeout. */
	| "BUSY"
	/** A guarded put would have started a branch; see {@link ConcurrencyError}. */
	| "CONFLICT"
	/** There is no room for what was to be stored. */
	| "DISK_FULL"
	/** The operating system could not read or write the file. */
	| "IO_ERROR"
	/** The file can't be opened: its folder is missing, or permissions are. */
	| "CANT_OPEN"
	/** The file was removed, or another was put in its place, while it was open. */
	| "FILE_GONE"
	/** The database ran out of memory. */
	| "OUT_OF_MEMORY"
	/** The database server could not be reached for longer than the retry timeout. */
	| "UNREACHABLE"
	/** The saver was closed. */
	| "CLOSED"
	/** A required package is not installed. */
	| "MISSING_DRIVER"
	/** The database reported an error of another kind; see `cause`. */
	| "STORAGE";

/**
 * The one error class of this package.
 *
 * `code` is stable and meant for programs; `message` names the offending value and the next step and is
 * meant for people; `cause` is the error from below, if there is one.
 *
 * @example
 * ```ts
 * try {
 *   await saver.copyThread("main", "experiment");
 * } catch (error) {
 *   if (error instanceof CheckpointError && error.code === "THREAD_EXISTS") await saver.deleteThread("experiment");
 *   else throw error;
 * }
 * ```
 */
export class CheckpointError extends Error {
	override readonly name: string = "CheckpointError";
	readonly code: CheckpointErrorCode;
	/** What can't be read, if the error is about something stored. */
	readonly place: Place | undefined;

	constructor(code: CheckpointErrorCode, message: string, options?: ErrorOptions & { place?: Place | undefined }) {
		super(`${message} [${code}]`, options);
		this.code = code;
		this.place = options?.place;
	}
}

/** Whether an error says that what is stored is damaged. */
export function isCorrupt(error: unknown): error is CheckpointError {
	return error instanceof CheckpointError && error.code === "CORRUPT";
}

/** Where something is stored, as far as that is known. */
export interface Place {
	readonly threadId?: string | undefined;
	readonly ns?: string | undefined;
	readonly checkpointId?: string | undefined;
	readonly channel?: string | undefined;
	/** Of a write. */
	readonly taskId?: string | undefined;
	readonly idx?: number | undefined;
	readonly generation?: number | undefined;
	readonly blobId?: number | undefined;
}

/** The same error, with what is known besides of where it happened. */
export function locate(error: unknown, place: Place): unknown {
	if (!(error instanceof CheckpointError)) return error;
	const message = error.message.slice(0, -` [${error.code}]`.length);
	return new CheckpointError(error.code, message, { cause: error.cause, place: { ...place, ...error.place } });
}

/**
 * A put was refused, with nothing stored, because its parent is not the newest checkpoint of its namespace any more.
 * Only with `onConflict: "reject"`.
 *
 * @example
 * ```ts
 * if (error instanceof ConcurrencyError) await graph.invoke(input, config); // starts anew from what the other run left
 * ```
 */
export class ConcurrencyError extends CheckpointError {
	/** The checkpoint that the put was to follow; `undefined` if it was to be the first. */
	readonly parentId: string | undefined;
	/** The newest checkpoint. */
	readonly headId: string;
	override readonly name = "ConcurrencyError";

	constructor(refused: { threadId: string; ns: string; id: string; parentId: string | undefined }, headId: string) {
		const { threadId, ns, id, parentId } = refused;
		const parent = parentId === undefined ? "no checkpoint" : `checkpoint ${quote(parentId)}`;
		super(
			"CONFLICT",
			`Checkpoint ${quote(id)} was to follow ${parent}, but the newest one of thread ${quote(threadId)}, namespace ${quote(ns)}, is ${quote(headId)}: read the thread again and start from there.`,
		);
		this.parentId = parentId;
		this.headId = headId;
	}
}

/** A short, safe rendering of any value for an error message. */
export function quote(value: unknown): string {
	const text = typeof value === "string" ? JSON.stringify(value) : describe(value);
	return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

function describe(value: unknown): string {
	if (Array.isArray(value)) return `an array of ${value.length}`;
	if (typeof value === "object" && value !== null) return "an object";
	if (typeof value === "function") return "a function";
	return typeof value === "bigint" ? `${value}n` : String(value);
}

import { CheckpointError, quote } from "../errors.ts";
import type { PostgresPool } from "../storage/postgres/driver.ts";
import { PostgresSession, type SessionOptions } from "../storage/postgres/session.ts";
import { PostgresStorage } from "../storage/postgres/storage.ts";
import { checkOptions } from "./options.ts";
import { SEALED_OPTIONS, SealedSaver, type SealedSaverOptions } from "./sealed-saver.ts";

export interface PostgresSaverOptions extends SealedSaverOptions, SessionOptions {
	/** The schema of the tables, which is made if it is not there. Default `"public"`. */
	schema?: string;
}

const POSTGRES_OPTIONS = {
	...SEALED_OPTIONS,
	schema: "anything",
	retryTimeout: "milliseconds",
	prepare: "anything",
} as const;

/** PostgreSQL cuts longer names of schemas without an error. */
const LONGEST_NAME = 63;

/**
 * Keeps checkpoints in PostgreSQL, each step's changes only, for any number of servers.
 *
 * The first call connects and sets up what is missing; what is wrong with it rejects that call.
 *
 * @example
 * ```ts
 * const checkpointer = PostgresSaver.fromConnString("postgres://localhost/app", { schema: "checkpoints" });
 * const graph = builder.compile({ checkpointer });
 * ```
 */
export class PostgresSaver extends SealedSaver {
	/** @param database a URL, as pg takes it, or a `Pool` of pg, which stays the caller's to end */
	constructor(database: string | PostgresPool, options: PostgresSaverOptions = {}) {
		super(storageFor(database, options), options);
	}

	static fromConnString(url: string, options?: PostgresSaverOptions): PostgresSaver {
		return new this(url, options);
	}
}

function storageFor(database: string | PostgresPool, options: PostgresSaverOptions): PostgresStorage {
	checkOptions("PostgresSaver", options, POSTGRES_OPTIONS);
	const { schema = "public" } = options;
	if (typeof database !== "string" && typeof database?.connect !== "function")
		throw new CheckpointError("INVALID_OPTION", `PostgresSaver takes a URL or a Pool of pg, got ${quote(database)}.`);
	// PostgreSQL would take all halves of surrogate pairs for one character, and share tables with names that begin alike.
	const isName = typeof schema === "string" && /^[^\0]+$/.test(schema) && schema.isWellFormed();
	if (!isName || Buffer.byteLength(schema) > LONGEST_NAME)
		throw new CheckpointError(
			"INVALID_OPTION",
			`\`schema\` must be the name of a schema with at most ${LONGEST_NAME} bytes, got ${quote(schema)}.`,
		);
	return new PostgresStorage(new PostgresSession(database, options), schema);
}

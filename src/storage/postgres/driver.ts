import { createRequire } from "node:module";
import { CheckpointError } from "../../errors.ts";

/** The part of a `pg` client that is used here. */
export interface PostgresClient {
	query(config: PostgresQuery): Promise<{ rows: unknown[][] }>;
	on(event: "error", listener: (error: Error) => void): unknown;
	listeners(event: "error"): unknown[];
	release(destroy?: boolean): void;
}

export interface PostgresQuery {
	readonly text: string;
	readonly values: unknown[];
	readonly name: string | undefined;
	readonly rowMode: "array";
	readonly types: { getTypeParser(type: number, format: string): (value: string) => unknown };
}

/** The part of a `pg` `Pool` that is used here; any of version 8 fits. */
export interface PostgresPool {
	connect(): Promise<PostgresClient>;
	on(event: "error", listener: (error: Error) => void): unknown;
	on(event: "connect", listener: (client: Pick<PostgresClient, "on" | "listeners">) => void): unknown;
	listeners(event: "error" | "connect"): unknown[];
	end(): Promise<void>;
}

/** Opens a pool with pg, which is loaded only now: the package can be installed without it. */
export function openPool(connectionString: string): PostgresPool {
	let pg: { Pool: new (options: object) => PostgresPool };
	try {
		pg = createRequire(import.meta.url)("pg");
	} catch (cause) {
		throw new CheckpointError(
			"MISSING_DRIVER",
			"PostgresSaver needs pg, which is not installed: run `npm install pg`.",
			{ cause },
		);
	}
	// An idle pool keeps no process from ending.
	return new pg.Pool({ connectionString, keepAlive: true, allowExitOnIdle: true });
}

/** Errors of the server that a second try may not meet: conflicts, lack of room, and what a fail-over brings. */
const PASSING = new Set([
	"40001", // serialization failure
	"40P01", // deadlock
	"23505", // two transactions added the same row; the second one finds it when it looks again
	"55P03", // lock not available
	"57014", // canceled, by a timeout for one
	"53300", // too many connections
	"25006", // read only, as a former primary is after a fail-over
	"57P01", // shut down by an administrator
	"57P02", // shut down by a crash
	"57P03", // starting up
	"57P05", // idle for too long
]);
const BROKEN = /^(08|57P|25006|53300)/;
/** Unknown, known already, or made for tables that have changed since. */
const ABOUT_NAMES = /^(26000|42P05)$/;

/**
 * What an error says about the call that it ended: whether trying again may help, whether the connection is of no more use,
 * and whether the server does not know the named statements that the client knows, as there is a pooler between them.
 */
export function judge(error: unknown) {
	if (error instanceof CheckpointError)
		return { isPassing: false, isBroken: error.code === "BUSY", isAboutNames: false };
	const { code, message } = describe(error);
	if (!isServerCode(code)) {
		// pg has no codes for its own errors; the system's begin with E.
		const isPassing = /^E[A-Z_]+$/.test(code) || /connect|terminated|timeout/i.test(message);
		return { isPassing, isBroken: true, isAboutNames: false };
	}
	const isAboutNames = ABOUT_NAMES.test(code) || /cached plan must not change/.test(message);
	// Ids of blobs are never used twice, so that looking again would not help.
	const isTaken = code === "23505" && /blob/.test(String((error as { table?: unknown }).table));
	const isPassing = (PASSING.has(code) && !isTaken) || code.startsWith("08") || isAboutNames;
	return { isPassing, isBroken: BROKEN.test(code) || isAboutNames, isAboutNames };
}

/** The error a user gets for one of PostgreSQL's or of pg's. */
export function translateError(error: unknown): unknown {
	if (error instanceof CheckpointError || !(error instanceof Error)) return error;
	const { code } = describe(error);
	const fail = (kind: ConstructorParameters<typeof CheckpointError>[0], advice: string) =>
		new CheckpointError(kind, `PostgreSQL: ${error.message}: ${advice}.`, { cause: error });
	if (/after calling end on the pool/.test(error.message)) return fail("CLOSED", "open a new one");
	if (/timeout exceeded when trying to connect/.test(error.message))
		return fail("BUSY", "all connections of the pool are in use, raise its `max`");
	if (code === "25006") return fail("READ_ONLY", "this server takes no writes, connect to the primary");
	if (code === "42501") return fail("STORAGE", "the role lacks a privilege, grant it");
	if (code === "54000") return fail("STORAGE", "an id is too long for an index, keep ids below 2,000 bytes");
	if (code.startsWith("08") || code.startsWith("57P") || !isServerCode(code))
		return fail("UNREACHABLE", "check the server and the connection string, or raise `retryTimeout`");
	if (PASSING.has(code)) return fail("BUSY", "other work on the server was in the way too long, try again");
	return fail("STORAGE", `it reported ${code}`);
}

function describe(error: unknown): { code: string; message: string } {
	const { code = "", message = error } = Object(error) as { code?: unknown; message?: unknown };
	return { code: String(code), message: String(message) };
}

function isServerCode(code: string): boolean {
	return /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code);
}

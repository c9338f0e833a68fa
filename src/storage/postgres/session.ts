import { setTimeout as sleep } from "node:timers/promises";
import { CheckpointError } from "../../errors.ts";
import { judge, openPool, type PostgresClient, type PostgresPool, translateError } from "./driver.ts";
import { toText } from "./rows.ts";
import { compile, type SqlRow, type Values } from "./statement.ts";

/** Runs one statement on the connection that a piece of work holds. */
export type Query = (sql: string, values?: Values) => Promise<SqlRow[]>;

/** Milliseconds before the second try; each further one waits twice as long, up to the most. */
const FIRST_PAUSE = 4;
const LONGEST_PAUSE = 250;

export interface SessionOptions {
	/**
	 * How long a call is tried that meets a conflict, a lost connection or a server that restarts, in milliseconds.
	 * Default 30,000.
	 */
	retryTimeout?: number;
	/**
	 * Whether statements are prepared once for each connection. Default true. A pooler that can't do this is noticed by
	 * itself; `false` saves the attempt.
	 */
	prepare?: boolean;
}

/**
 * Statements on the connections of a pool. What ends in an error that may pass is tried again until the time is up:
 * conflicts, lost connections, a server that restarts or that another one takes over from. No connection is held
 * between two calls, and no setting or transaction is left behind on one.
 */
export class PostgresSession {
	readonly #database: string | PostgresPool;
	readonly #retryTimeout: number;
	/** By their text. */
	readonly #statements = new Map<string, ReturnType<typeof compile>>();
	#pool: PostgresPool | undefined;
	#isNaming: boolean;
	#isClosed = false;

	/** @param database a URL, or the application's pool, which will also end it */
	constructor(database: string | PostgresPool, { retryTimeout = 30_000, prepare = true }: SessionOptions) {
		this.#database = database;
		this.#retryTimeout = retryTimeout;
		this.#isNaming = prepare;
	}

	/** Work that is done on one connection, and again on another if it fails on that one. */
	async run<T>(work: (query: Query, isRetry: boolean) => Promise<T>): Promise<T> {
		const end = Date.now() + this.#retryTimeout;
		let reason: unknown;
		for (let attempt = 0; ; attempt++) {
			try {
				return await this.#try(work, attempt > 0, end);
			} catch (error) {
				const { isPassing, isAboutNames } = judge(error);
				if (isAboutNames) this.#isNaming = false;
				const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** attempt) * (0.5 + Math.random());
				// Why it was tried again says more than that the time was up.
				const told = error instanceof CheckpointError && error.code === "BUSY" ? (reason ?? error) : error;
				if (!isPassing || this.#isClosed || Date.now() + pause >= end) throw translateError(told);
				reason = error;
				await sleep(pause);
			}
		}
	}

	async close(): Promise<void> {
		const pool = this.#pool;
		this.#isClosed = true;
		this.#pool = undefined;
		if (pool !== this.#database) await pool?.end();
	}

	async #try<T>(work: (query: Query, isRetry: boolean) => Promise<T>, isRetry: boolean, end: number): Promise<T> {
		const client = await this.#acquire(end);
		keepQuiet(client);
		let isBroken = false;
		try {
			return await work((sql, values) => this.#send(client, sql, values, end), isRetry);
		} catch (error) {
			isBroken = judge(error).isBroken;
			throw error;
		} finally {
			client.release(isBroken);
		}
	}

	async #send(client: PostgresClient, sql: string, values: Values = {}, end: number): Promise<SqlRow[]> {
		const statement = this.#statements.get(sql) ?? compile(sql);
		this.#statements.set(sql, statement);
		const { name, text, parameters } = statement;
		const given = parameters.map((parameter) => values[parameter]);
		const sent = client.query({
			text,
			rowMode: "array",
			types: RAW,
			values: given.map((value) => (typeof value === "string" ? toText(value) : value)),
			name: this.#isNaming && parameters.length > 0 ? name : undefined,
		});
		const { rows } = await inTime(sent, end, "The server did not answer in time");
		return rows as SqlRow[];
	}

	#acquire(end: number): Promise<PostgresClient> {
		if (this.#isClosed) throw new CheckpointError("CLOSED", "The saver was closed: make a new one.");
		this.#pool ??= openQuietly(this.#database);
		const acquired = this.#pool.connect();
		const giveBack = (client: PostgresClient) => client.release();
		return inTime(acquired, end, "No connection of the pool was free in time", giveBack);
	}
}

/** Wraps work on one connection into a transaction. */
export async function inTransaction<T>(query: Query, work: () => Promise<T>): Promise<T> {
	await query("BEGIN");
	try {
		const result = await work();
		await query("COMMIT");
		return result;
	} catch (error) {
		if (!judge(error).isBroken) await query("ROLLBACK");
		throw error;
	}
}

/** Values stay as the server wrote them, whatever the application has chosen for its own statements. */
const RAW = { getTypeParser: (_: number, format: string) => (format === "binary" ? refuseBinary : String) };

function refuseBinary(): never {
	throw new CheckpointError("INVALID_OPTION", "The pool of pg has `binary: true`: give the saver one of its own.");
}

function openQuietly(database: string | PostgresPool): PostgresPool {
	const pool = typeof database === "string" ? openPool(database) : database;
	keepQuiet(pool);
	// A connection can break in the moment that it is handed out.
	if (!pool.listeners("connect").includes(keepQuiet)) pool.on("connect", keepQuiet);
	return pool;
}

/** Errors of connections would end the process if nobody listened. The statement that meets them has its own. */
function keepQuiet(source: Pick<PostgresClient, "on" | "listeners">): void {
	if (!source.listeners("error").includes(ignore)) source.on("error", ignore);
}

function ignore(): void {}

/** @param late takes what comes when nobody waits for it any more */
function inTime<T>(promise: Promise<T>, end: number, message: string, late?: (value: T) => void): Promise<T> {
	return new Promise((resolve, reject) => {
		let isLate = false;
		const timer = setTimeout(() => {
			isLate = true;
			reject(new CheckpointError("BUSY", `${message}: try again, or raise \`retryTimeout\`.`));
		}, end - Date.now());
		promise.then((value) => (isLate ? late?.(value) : resolve(value)), reject).finally(() => clearTimeout(timer));
	});
}

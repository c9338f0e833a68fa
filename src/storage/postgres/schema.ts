import { CheckpointError, quote } from "../../errors.ts";
import { inTransaction, type PostgresSession, type Query } from "./session.ts";

/** A name as SQL has it. */
function quoteName(name: string): string {
	return `"${name.replaceAll('"', '""')}"`;
}

const TABLES = ["thread", "checkpoint", "blob", "write", "base", "format"] as const;

/** Full names of our tables, which carry a prefix because the schema may be the application's own. */
export type Tables = Readonly<Record<(typeof TABLES)[number], string>>;

export function tablesOf(schema: string): Tables {
	const names = TABLES.map((table) => [table, `${quoteName(schema)}.delta_${table}`]);
	return Object.fromEntries(names) as Record<keyof Tables, string>;
}

/**
 * Before so many changes a table has no statistics: those of a table of a few rows make plans that read all of it, and
 * connections keep such plans while it grows.
 */
const SETTLED = "autovacuum_analyze_threshold = 1000, autovacuum_vacuum_threshold = 1000";

/** The stored format that this version of the package writes. */
const FORMAT_VERSION = 1;

/**
 * Every key but that of a thread and of a blob begins with the thread's number, so that tables can be partitioned by
 * it, and those two by what they have. Ids compare by their bytes. Bytes are compressed before they get here, if at all.
 *
 * Columns that are not in the interface: `number` names a thread in fewer bytes than its id; `updated_minute` is for the
 * list of threads, so that most updates leave its index alone; `batch` is the `fresh` of the batch that stored a row, by
 * which a batch that is sent again finds out that it was stored. `writer` is the storage object that changed a thread
 * last, and `writer_since` the batch with which it took over from another one: while neither changes, nobody else has
 * changed the thread.
 */
const schemaOf = ({ thread, checkpoint, blob, write, base, format }: Tables) => `
CREATE TABLE ${thread} (
	number bigint NOT NULL,
	family bigint NOT NULL,
	stamp bigint NOT NULL,
	created_at bigint NOT NULL,
	updated_at bigint NOT NULL,
	updated_minute bigint NOT NULL,
	writer bigint NOT NULL,
	writer_since bigint NOT NULL,
	thread_id text COLLATE "C" PRIMARY KEY
) WITH (fillfactor = 50, ${SETTLED});
CREATE INDEX ON ${thread} (number);
CREATE INDEX ON ${thread} (family);
CREATE INDEX ON ${thread} (updated_minute);

CREATE TABLE ${checkpoint} (
	thread bigint NOT NULL,
	batch bigint NOT NULL,
	step bigint,
	ns text COLLATE "C" NOT NULL,
	id text COLLATE "C" NOT NULL,
	parent_id text COLLATE "C",
	run_id text COLLATE "C",
	source text COLLATE "C",
	labels jsonb,
	blobs bigint[] NOT NULL,
	head bytea NOT NULL,
	PRIMARY KEY (thread, ns, id)
) WITH (${SETTLED});
ALTER TABLE ${checkpoint} ALTER head SET STORAGE EXTERNAL;
CREATE INDEX ON ${checkpoint} (thread, ns, parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX ON ${checkpoint} (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE ${blob} (
	id bigint PRIMARY KEY,
	family bigint NOT NULL,
	base bigint,
	source bigint,
	type text COLLATE "C",
	data bytea NOT NULL
) WITH (${SETTLED});
ALTER TABLE ${blob} ALTER data SET STORAGE EXTERNAL;
CREATE INDEX ON ${blob} (family);

CREATE TABLE ${write} (
	thread bigint NOT NULL,
	batch bigint NOT NULL,
	idx bigint NOT NULL,
	actor bigint,
	blob bigint,
	generation integer NOT NULL,
	ns text COLLATE "C" NOT NULL,
	id text COLLATE "C" NOT NULL,
	task_id text COLLATE "C" NOT NULL,
	task_path text COLLATE "C",
	channel text COLLATE "C" NOT NULL,
	run_id text COLLATE "C",
	type text COLLATE "C",
	value bytea NOT NULL,
	PRIMARY KEY (thread, ns, id, task_id, generation, idx)
) WITH (${SETTLED});
ALTER TABLE ${write} ALTER value SET STORAGE EXTERNAL;
CREATE INDEX ON ${write} (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE ${base} (
	thread bigint NOT NULL,
	ns text COLLATE "C" NOT NULL,
	id text COLLATE "C" NOT NULL,
	channel text COLLATE "C" NOT NULL,
	data bytea NOT NULL,
	PRIMARY KEY (thread, ns, id, channel)
) WITH (${SETTLED});
ALTER TABLE ${base} ALTER data SET STORAGE EXTERNAL;

CREATE TABLE ${format} (version integer NOT NULL, next bigint NOT NULL);
INSERT INTO ${format} VALUES (${FORMAT_VERSION}, 1);
`;

const LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($name, 0))";
const INSPECT = `SELECT current_setting('server_encoding'), to_regclass($format) IS NOT NULL,
	EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $schema)`;

/** Makes sure that a schema has our tables. One that has them is only looked at. */
export async function setUp(session: PostgresSession, schema: string): Promise<void> {
	const tables = tablesOf(schema);
	const inspect = async (query: Query) => {
		const [[encoding, hasTables, hasSchema] = []] = await query(INSPECT, { schema, format: tables.format });
		const [[version] = []] = hasTables === "t" ? await query(`SELECT version FROM ${tables.format}`) : [];
		if (Number(version) > FORMAT_VERSION)
			throw new CheckpointError(
				"NEWER_FORMAT",
				`Schema ${quote(schema)} has stored format ${version}, this version of langgraph-checkpoint-delta reads up to ${FORMAT_VERSION}: install a newer one.`,
			);
		return { encoding, hasTables: hasTables === "t", hasSchema: hasSchema === "t" };
	};
	const create = async (query: Query) => {
		// Other processes may do the same at this moment: the second one finds it done.
		await query(LOCK, { name: `langgraph-checkpoint-delta ${schema}` });
		const { encoding, hasTables, hasSchema } = await inspect(query);
		if (hasTables) return;
		if (encoding !== "UTF8")
			throw new CheckpointError(
				"FOREIGN_DATABASE",
				`The database has encoding ${encoding}, but ids can be any text: use one with encoding UTF8.`,
			);
		if (!hasSchema) await query(`CREATE SCHEMA ${quoteName(schema)}`);
		await query(schemaOf(tables));
	};
	if ((await session.run(inspect)).hasTables) return;
	await session.run((query) => inTransaction(query, () => create(query)));
}

import { UNKNOWN_LABELS } from "./labels.ts";
import { tableName } from "./schema.ts";
import { compile } from "./statement.ts";

const CHECKPOINT = "t.thread_id, t.stamp, c.ns, c.id, c.parent, c.run_id, c.source, c.step, c.head";
const WRITE =
	"t.thread_id, w.ns, w.checkpoint, w.task, w.generation, w.idx, w.task_path, w.channel, w.run_id, w.actor, w.type, w.blob, w.value";
const BASE = "t.thread_id, b.ns, b.checkpoint, b.channel, b.data";
const THREAD = "thread_id, family, stamp, created_at, updated_at, checkpoints, head";
/** Columns of a row that a copy takes over. */
const COPIED_CHECKPOINT = "step, ns, id, run_id, source, labels, blobs, head";
const COPIED_WRITE = "idx, actor, blob, generation, ns, checkpoint, task, task_path, channel, run_id, type, value";

/** Every statement that does not depend on the call, on the tables of one schema. */
export function statementsOn(schema: string) {
	const [thread, checkpoint, blob] = ["thread", "checkpoint", "blob"].map((name) => tableName(schema, name));
	const [write, base, sequence] = ["write", "base", "sequence"].map((name) => tableName(schema, name));
	const checkpoints = `${thread} t JOIN ${checkpoint} c ON c.thread = t.number`;
	const writes = `${thread} t JOIN ${write} w ON w.thread = t.number`;
	const bases = `${thread} t JOIN ${base} b ON b.thread = t.number`;
	const keys = "unnest($threads::text[], $nss::text[], $ids::text[]) AS k (thread_id, ns, id)";
	const places = "unnest($nss::text[], $ids::text[]) AS k (ns, id)";
	/** How many rows a change returned, and their bytes. */
	const counted = (name: string) => `(SELECT count(*) FROM ${name}), (SELECT coalesce(sum(bytes), 0) FROM ${name})`;
	const sliced = "substr($data::bytea, r.start, r.length)";

	const statements = {
		reserve: `UPDATE ${sequence} SET next = next + $count::bigint RETURNING next - $count::bigint`,

		getCheckpoint: `SELECT ${CHECKPOINT} FROM ${checkpoints} WHERE t.thread_id = $thread AND c.ns = $ns AND c.id = $id`,
		// A cycle ends at the limit.
		getPath: `WITH RECURSIVE path AS (
				SELECT 1 AS depth, c.*, t.thread_id, t.stamp FROM ${checkpoints}
				WHERE t.thread_id = $thread AND c.ns = $ns AND c.id = $id AND $limit::bigint > 0
				UNION ALL
				SELECT p.depth + 1, c.*, p.thread_id, p.stamp FROM path p CROSS JOIN LATERAL (
					SELECT * FROM ${checkpoint} c WHERE c.thread = p.thread AND c.ns = p.ns AND c.id = p.parent OFFSET 0
				) c WHERE p.depth < $limit::bigint
			) SELECT thread_id, stamp, ns, id, parent, run_id, source, step, head FROM path ORDER BY depth`,
		getChildren: `SELECT ${CHECKPOINT} FROM ${checkpoints}
			WHERE t.thread_id = $thread AND c.ns = $ns AND c.parent = ANY ($parents::text[])`,
		findRunCheckpoints: `SELECT ${CHECKPOINT} FROM ${checkpoints} WHERE c.run_id = ANY ($runs::text[])`,

		getWrites: `SELECT ${WRITE} FROM ${keys} JOIN ${thread} t ON t.thread_id = k.thread_id
			JOIN ${write} w ON w.thread = t.number AND w.ns = k.ns AND w.checkpoint = k.id`,
		getThreadWrites: `SELECT ${WRITE} FROM ${writes} WHERE t.thread_id = $thread`,
		getOrphanWrites: `SELECT ${WRITE} FROM ${writes}
			WHERE t.thread_id = $thread AND w.ns = $ns AND w.checkpoint < $before AND NOT EXISTS (
				SELECT FROM ${checkpoint} c WHERE c.thread = w.thread AND c.ns = w.ns AND c.id = w.checkpoint
			)`,
		findRunWrites: `SELECT ${WRITE} FROM ${writes} WHERE w.run_id = ANY ($runs::text[])`,

		getBases: `SELECT ${BASE} FROM ${keys} JOIN ${thread} t ON t.thread_id = k.thread_id
			JOIN ${base} b ON b.thread = t.number AND b.ns = k.ns AND b.checkpoint = k.id`,
		getThreadBases: `SELECT ${BASE} FROM ${bases} WHERE t.thread_id = $thread`,

		getBlobs: `WITH RECURSIVE chain AS (
				SELECT b.id, b.base, b.source FROM ${blob} b WHERE b.id = ANY ($ids::bigint[])
				UNION
				SELECT b.id, b.base, b.source FROM chain c
				CROSS JOIN LATERAL (SELECT * FROM ${blob} b WHERE b.id IN (c.base, c.source) OFFSET 0) b
			) SELECT b.id, b.base, b.source, b.type, b.data
			FROM chain c CROSS JOIN LATERAL (SELECT * FROM ${blob} b WHERE b.id = c.id OFFSET 0) b`,
		listBlobs: `SELECT id, base, source, octet_length(data) FROM ${blob} WHERE family = $family`,
		/** Jumps from one family to the next, as long as there are. */
		listFamilies: `WITH RECURSIVE found AS (
				SELECT 1 AS depth, (SELECT min(family) FROM ${blob} WHERE family > $after::bigint) AS family
				UNION ALL
				SELECT f.depth + 1, (SELECT min(b.family) FROM ${blob} b WHERE b.family > f.family) FROM found f
				WHERE f.family IS NOT NULL AND f.depth < $limit::bigint
			) SELECT family FROM found WHERE family IS NOT NULL AND $limit::bigint > 0 ORDER BY depth`,
		// Rows that another server is removing at this moment are left to it.
		removeBlobs: `DELETE FROM ${blob} b USING (
				SELECT id FROM ${blob} WHERE id = ANY ($ids::bigint[]) AND family = $family FOR UPDATE SKIP LOCKED
			) AS dead WHERE b.id = dead.id`,

		getThread: `SELECT ${THREAD} FROM ${thread} WHERE thread_id = $thread`,
		getFamily: `SELECT ${THREAD} FROM ${thread} WHERE family = $family`,
		listThreads: `SELECT ${THREAD} FROM ${thread}
			ORDER BY updated_minute DESC, updated_at DESC, thread_id DESC LIMIT $limit::bigint`,
		listThreadsAfter: `SELECT ${THREAD} FROM ${thread}
			WHERE updated_minute <= $minute::bigint AND (updated_at, thread_id) < ($updated::bigint, $thread)
			ORDER BY updated_minute DESC, updated_at DESC, thread_id DESC LIMIT $limit::bigint`,
		totals: `SELECT (SELECT count(*) FROM ${thread}), (SELECT count(*) FROM ${checkpoint}),
			(SELECT count(*) FROM ${write}), (SELECT coalesce(sum(octet_length(head)), 0) FROM ${checkpoint}),
			(SELECT coalesce(sum(octet_length(data)), 0) FROM ${blob}),
			(SELECT coalesce(sum(octet_length(value)), 0) FROM ${write})`,

		findMiscounted: `SELECT t.thread_id FROM ${thread} t WHERE
				t.checkpoints <> (SELECT count(*) FROM ${checkpoint} c WHERE c.thread = t.number) OR
				t.head IS DISTINCT FROM (SELECT max(c.id) FROM ${checkpoint} c WHERE c.thread = t.number AND c.ns = '')`,
		findLost: `SELECT DISTINCT r.thread, r.name FROM (
				SELECT thread, 'checkpoint' AS name FROM ${checkpoint} UNION ALL SELECT thread, 'write' FROM ${write}
				UNION ALL SELECT thread, 'base' FROM ${base}
			) r WHERE NOT EXISTS (SELECT FROM ${thread} t WHERE t.number = r.thread)`,

		lockThread: `SELECT number, family, stamp FROM ${thread} WHERE thread_id = $thread FOR NO KEY UPDATE`,
		shareThread: `SELECT number, family, stamp FROM ${thread} WHERE thread_id = $thread FOR SHARE`,
		/** Waits for puts that have seen it. */
		removeThread: `DELETE FROM ${thread} WHERE thread_id = $thread RETURNING number`,
		addThread: `INSERT INTO ${thread}
			(thread_id, number, family, stamp, created_at, updated_at, updated_minute, checkpoints)
			VALUES ($thread, $number, $family, $number, $now, $now, $minute, 0) ON CONFLICT DO NOTHING RETURNING number`,
		restamp: `UPDATE ${thread} SET stamp = $stamp,
			checkpoints = (SELECT count(*) FROM ${checkpoint} WHERE thread = $number),
			head = (SELECT max(id) FROM ${checkpoint} WHERE thread = $number AND ns = '') WHERE thread_id = $thread`,

		removeRows: `WITH points AS (
				DELETE FROM ${checkpoint} c USING ${places} WHERE c.thread = $number AND c.ns = k.ns AND c.id = k.id
				RETURNING octet_length(c.head) AS bytes
			), written AS (
				DELETE FROM ${write} w USING ${places} WHERE w.thread = $number AND w.ns = k.ns AND w.checkpoint = k.id
				RETURNING octet_length(w.value) AS bytes
			), bases AS (
				DELETE FROM ${base} b USING ${places} WHERE b.thread = $number AND b.ns = k.ns AND b.checkpoint = k.id
			) SELECT ${counted("points")}, ${counted("written")}`,
		removeWrites: `WITH written AS (
				DELETE FROM ${write} w
				USING unnest($nss::text[], $ids::text[], $tasks::text[], $generations::int[], $idxs::bigint[])
					AS k (ns, id, task, generation, idx)
				WHERE w.thread = $number AND w.ns = k.ns AND w.checkpoint = k.id AND w.task = k.task
					AND w.generation = k.generation AND w.idx = k.idx
				RETURNING octet_length(w.value) AS bytes
			) SELECT 0, 0, ${counted("written")}`,
		removeOrphans: `WITH written AS (
				DELETE FROM ${write} w
				USING unnest($nss::text[], $ids::text[], $tasks::text[], $generations::int[], $idxs::bigint[])
					AS k (ns, id, task, generation, idx)
				WHERE w.thread = $number AND w.ns = k.ns AND w.checkpoint = k.id AND w.task = k.task
					AND w.generation = k.generation AND w.idx = k.idx
					AND NOT EXISTS (
						SELECT FROM ${checkpoint} c WHERE c.thread = $number AND c.ns = k.ns AND c.id = k.id
					)
				RETURNING octet_length(w.value) AS bytes
			) SELECT 0, 0, ${counted("written")}`,
		removeAll: `WITH points AS (
				DELETE FROM ${checkpoint} WHERE thread = $number RETURNING octet_length(head) AS bytes
			), written AS (
				DELETE FROM ${write} WHERE thread = $number RETURNING octet_length(value) AS bytes
			), bases AS (
				DELETE FROM ${base} WHERE thread = $number
			) SELECT ${counted("points")}, ${counted("written")}`,
		relink: `UPDATE ${checkpoint} c SET parent = k.parent
			FROM unnest($nss::text[], $ids::text[], $parents::text[]) AS k (ns, id, parent)
			WHERE c.thread = $number AND c.ns = k.ns AND c.id = k.id`,
		putBases: `INSERT INTO ${base} (thread, ns, checkpoint, channel, data)
			SELECT $number, r.ns, r.id, r.channel, ${sliced}
			FROM unnest($nss::text[], $ids::text[], $channels::text[], $starts::int[], $lengths::int[])
				AS r (ns, id, channel, start, length)
			ON CONFLICT (thread, ns, checkpoint, channel) DO UPDATE SET data = excluded.data`,

		copyAll: `WITH points AS (
				INSERT INTO ${checkpoint} (thread, batch, puts, parent, ${COPIED_CHECKPOINT})
				SELECT $number, $number, 1, parent, ${COPIED_CHECKPOINT} FROM ${checkpoint} WHERE thread = $source
				RETURNING octet_length(head) AS bytes
			), written AS (
				INSERT INTO ${write} (thread, batch, ${COPIED_WRITE})
				SELECT $number, $number, ${COPIED_WRITE} FROM ${write} WHERE thread = $source
				RETURNING octet_length(value) AS bytes
			), bases AS (
				INSERT INTO ${base} (thread, ns, checkpoint, channel, data)
				SELECT $number, ns, checkpoint, channel, data FROM ${base} WHERE thread = $source
			) SELECT ${counted("points")}, ${counted("written")}`,
		copyRows: `WITH chosen AS MATERIALIZED (
				SELECT * FROM unnest($nss::text[], $ids::text[], $parents::text[]) AS k (ns, id, parent)
			), points AS (
				INSERT INTO ${checkpoint} (thread, batch, puts, parent, ${COPIED_CHECKPOINT})
				SELECT $number, $number, 1, k.parent, c.step, c.ns, c.id, c.run_id, c.source, c.labels, c.blobs, c.head
				FROM chosen k JOIN ${checkpoint} c ON c.thread = $source AND c.ns = k.ns AND c.id = k.id
				RETURNING octet_length(head) AS bytes
			), written AS (
				INSERT INTO ${write} (thread, batch, ${COPIED_WRITE})
				SELECT $number, $number, ${COPIED_WRITE} FROM ${write} w WHERE w.thread = $source AND EXISTS (
					SELECT FROM chosen k WHERE k.ns = w.ns AND k.id = w.checkpoint
				) RETURNING octet_length(value) AS bytes
			), bases AS (
				INSERT INTO ${base} (thread, ns, checkpoint, channel, data)
				SELECT $number, ns, checkpoint, channel, data FROM ${base} b WHERE b.thread = $source AND EXISTS (
					SELECT FROM chosen k WHERE k.ns = b.ns AND k.id = b.checkpoint
				)
			) SELECT ${counted("points")}, ${counted("written")}`,
		/** Rows that the caller made out of those of the source, which still tells what blobs they name. */
		addCheckpoints: `WITH points AS (
				INSERT INTO ${checkpoint} (thread, batch, puts, parent, ${COPIED_CHECKPOINT})
				SELECT $number, $number, 1, r.parent, r.step, r.ns, r.id, r.run_id, r.source, c.labels, c.blobs, ${sliced}
				FROM unnest($nss::text[], $ids::text[], $parents::text[], $runs::text[], $sources::text[], $steps::bigint[],
					$starts::int[], $lengths::int[]) AS r (ns, id, parent, run_id, source, step, start, length)
				LEFT JOIN ${checkpoint} c ON c.thread = $source AND c.ns = r.ns AND c.id = r.id
				ON CONFLICT DO NOTHING RETURNING octet_length(head) AS bytes
			) SELECT ${counted("points")}, 0, 0`,
		addWrites: `WITH written AS (
				INSERT INTO ${write} (thread, batch, ${COPIED_WRITE})
				SELECT $number, $number, r.idx, r.actor, r.blob, r.generation, r.ns, r.id, r.task, r.task_path, r.channel, r.run_id, r.type,
					CASE WHEN r.blob IS NULL THEN ${sliced} END
				FROM unnest($nss::text[], $ids::text[], $tasks::text[], $generations::int[], $idxs::bigint[],
					$paths::text[], $channels::text[], $runs::text[], $actors::bigint[], $types::text[], $blobs::bigint[],
					$starts::int[], $lengths::int[])
					AS r (ns, id, task, generation, idx, task_path, channel, run_id, actor, type, blob, start, length)
				RETURNING octet_length(value) AS bytes
			) SELECT 0, 0, ${counted("written")}`,

		// If it is encrypted now, labels would tell what it says.
		replaceHead: `UPDATE ${checkpoint} c SET head = $to, labels = '${UNKNOWN_LABELS}' FROM ${thread} t
			WHERE t.thread_id = $thread AND c.thread = t.number AND c.ns = $ns AND c.id = $id AND c.head = $from RETURNING 1`,
		replaceValue: `UPDATE ${write} w SET value = $to FROM ${thread} t
			WHERE t.thread_id = $thread AND w.thread = t.number AND w.ns = $ns AND w.checkpoint = $id AND w.task = $task
				AND w.generation = $generation AND w.idx = $idx AND w.value = $from RETURNING 1`,
		replaceReference: `UPDATE ${write} w SET value = $to, blob = NULL FROM ${thread} t
			WHERE t.thread_id = $thread AND w.thread = t.number AND w.ns = $ns AND w.checkpoint = $id AND w.task = $task
				AND w.generation = $generation AND w.idx = $idx AND w.blob = $from AND w.value IS NULL RETURNING 1`,
		replaceBase: `UPDATE ${base} b SET data = $to FROM ${thread} t
			WHERE t.thread_id = $thread AND b.thread = t.number AND b.ns = $ns AND b.checkpoint = $id
				AND b.channel = $channel AND b.data = $from RETURNING 1`,
		replaceBlob: `UPDATE ${blob} SET data = $to WHERE id = $id AND data = $from RETURNING 1`,

		clearThreads: `DELETE FROM ${thread}`,
		/** Rows of threads that are not there. */
		sweep: `WITH points AS (
				DELETE FROM ${checkpoint} c WHERE NOT EXISTS (SELECT FROM ${thread} t WHERE t.number = c.thread)
			), written AS (
				DELETE FROM ${write} w WHERE NOT EXISTS (SELECT FROM ${thread} t WHERE t.number = w.thread)
			), bases AS (
				DELETE FROM ${base} b WHERE NOT EXISTS (SELECT FROM ${thread} t WHERE t.number = b.thread)
			) DELETE FROM ${blob} b WHERE NOT EXISTS (SELECT FROM ${thread} t WHERE t.family = b.family)`,
	};
	return Object.fromEntries(Object.entries(statements).map(([name, sql]) => [name, compile(sql)])) as Record<
		keyof typeof statements,
		ReturnType<typeof compile>
	>;
}

export type Statements = ReturnType<typeof statementsOn>;

import { compareRows } from "../compare-rows.ts";
import type { ListedCheckpoint, ThreadOutline } from "../storage.ts";
import { checkCheckpoint } from "./checkpoints.ts";
import { unpackOptional } from "./ids.ts";
import { channelsIn } from "./pending.ts";
import { proveForks, proveKeys } from "./proofs.ts";
import type { SqliteSession } from "./session.ts";
import { addSums } from "./sums.ts";
import type { SqlThread } from "./threads.ts";
import { checkThreadTotal, type SumCount, totalOfCount } from "./writes.ts";

/** What a thread consists of, in the number that its indexes and totals say there is. */
export function findOutline(session: SqliteSession, thread: SqlThread): ThreadOutline {
	return { checkpoints: listCheckpoints(session, thread), written: findWritten(session, thread) };
}

/** Indexes tell it all: the parent of a checkpoint is the one before, unless the index of forks has another. */
function listCheckpoints(session: SqliteSession, thread: SqlThread): ListedCheckpoint[] {
	const { sql } = session;
	const { thread_id: threadId } = thread;
	proveKeys(session, thread);
	const forks = findForks(session, thread);
	const namespaces = sql.listNamespaces.pluck().all(thread.pk) as string[];
	const checkpoints: ListedCheckpoint[] = [];
	for (const ns of namespaces) {
		const ids = sql.listIds.pluck().all(thread.pk, ns) as string[];
		const elsewhere = forks.get(ns);
		for (let i = ids.length - 1; i >= 0; i--) {
			const id = ids[i] as string;
			const parentId = elsewhere?.has(id) ? elsewhere.get(id) : ids[i - 1];
			checkpoints.push({ threadId, ns, id, parentId });
		}
	}
	return namespaces.length > 1 ? checkpoints.sort(compareRows) : checkpoints;
}

/** The parents of forks, by namespace and id. */
function findForks(session: SqliteSession, thread: SqlThread): Map<string, Map<string, string | undefined>> {
	proveForks(session, thread);
	const forks = new Map<string, Map<string, string | undefined>>();
	for (const row of session.sql.outlineForks.all(thread.pk)) {
		const { ns, id, parent } = checkCheckpoint(row, thread);
		forks.set(ns, (forks.get(ns) ?? new Map()).set(id, unpackOptional(parent)));
	}
	return forks;
}

function findWritten(session: SqliteSession, thread: SqlThread): ThreadOutline["written"] {
	const { sql } = session;
	const groups = sql.outlineWrites.all(thread.pk) as (SumCount & { ns: string; channel: string })[];
	const bases = sql.outlineBases.get(thread.pk) as SumCount;
	const total = [bases, ...groups].reduce((sum, count) => addSums(sum, totalOfCount(count, thread)), 0);
	checkThreadTotal(session, thread, total);
	const pending = sql.outlinePending.all(thread.pk) as { ns: string; channels: Uint8Array }[];
	const names = pending.flatMap(({ ns, channels }) => channelsIn(channels).map((channel) => ({ ns, channel })));
	const written = new Map<string, Set<string>>();
	for (const { ns, channel } of [...groups, ...names]) written.set(ns, (written.get(ns) ?? new Set()).add(channel));
	return written;
}

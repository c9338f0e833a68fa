import { join } from "node:path";
import Database from "better-sqlite3";
import { SqliteSaver } from "../../src/sqlite.ts";
import { bundle } from "../support/bundle.ts";
import { inTemporaryFolder, runNode } from "../support/run-node.ts";
import { describeThread, readThread } from "./compare.ts";
import { KEYS } from "./crash-orders.ts";
import { SHARED, type SoakAccount, type SoakOrders } from "./soak-orders.ts";
import { Story } from "./story.ts";

export interface SoakReport {
	readonly operations: number;
	readonly shared: number;
	readonly reads: number;
	readonly bytes: number;
	/** Everything that was not as it should be. */
	readonly problems: string[];
}

/** Lets processes write, read and maintain one file, each its own threads and one thread of all; then compares. */
export async function soak(processes: number, seconds: number, seed: number): Promise<SoakReport> {
	return inTemporaryFolder(async (folder) => {
		await using program = await bundle("test/stress/soak-child.ts");
		const path = join(folder, "soak.db");
		const prefixes = Array.from({ length: processes }, (_, n) => `process ${n + 1} `);
		const orders = prefixes.map((prefix, n): SoakOrders => {
			const peers = prefixes.filter((one) => one !== prefix);
			return { path, seed: seed * 1000 + n, prefix, peers, seconds };
		});
		const printed = await Promise.all(orders.map((one) => runNode([program.path, JSON.stringify(one)])));
		const accounts = printed.map((text) => JSON.parse(text) as SoakAccount);
		const saver = new SqliteSaver(path, { encryption: { keys: KEYS, current: "odd" } });
		const problems = [
			...(await compareStories(saver, orders, accounts)),
			...(await compareShared(saver, accounts)),
			...(await checkSpace(saver, path)),
		];
		await saver.close();
		const sum = (count: (one: SoakAccount) => number) => accounts.reduce((total, one) => total + count(one), 0);
		return {
			operations: sum(({ done }) => done),
			shared: sum(({ shared }) => shared.length),
			reads: sum(({ reads }) => reads),
			bytes: sizeOf(path),
			problems,
		};
	});
}

async function compareStories(
	saver: SqliteSaver,
	orders: readonly SoakOrders[],
	accounts: readonly SoakAccount[],
): Promise<string[]> {
	const problems: string[] = [];
	const expected = new Set([SHARED]);
	for (const [n, { seed, prefix }] of orders.entries()) {
		const story = new Story(seed, prefix);
		for (let i = 0; i < (accounts[n]?.done ?? 0); i++) story.next().apply(story.model);
		for (const threadId of story.model.threads.keys()) {
			expected.add(threadId);
			if ((await readThread(saver, threadId)) !== describeThread(story.model, threadId))
				problems.push(`thread ${threadId} is not what process ${n + 1} has stored`);
		}
	}
	for (const { threadId } of (await saver.listThreads({ limit: 1000 })).threads)
		if (!expected.has(threadId)) problems.push(`thread ${threadId} should not be there`);
	return problems;
}

/** Every put that was acknowledged is there, and follows the one that it was put on. */
async function compareShared(saver: SqliteSaver, accounts: readonly SoakAccount[]): Promise<string[]> {
	const expected = new Map(accounts.flatMap(({ shared }) => shared));
	const found = new Map<string, unknown>();
	const parents = new Set<string | undefined>();
	for await (const { checkpoint, parentConfig } of saver.list({ configurable: { thread_id: SHARED } })) {
		found.set(checkpoint.id, checkpoint.channel_values.text);
		parents.add(parentConfig?.configurable?.checkpoint_id);
	}
	const problems: string[] = [];
	for (const [id, text] of expected)
		if (found.get(id) !== text) problems.push(`checkpoint ${id} of all has ${found.get(id)}, not ${text}`);
	if (found.size !== expected.size) problems.push(`${found.size} checkpoints of all are stored, not ${expected.size}`);
	for (const id of parents) if (id !== undefined && !found.has(id)) problems.push(`parent ${id} of all is missing`);
	return problems;
}

/** After a compaction there is nothing that nothing leads to. */
async function checkSpace(saver: SqliteSaver, path: string): Promise<string[]> {
	await saver.compact();
	const { damage, unreachable } = await saver.verify();
	const problems = damage.map(({ problem }) => `verify: ${problem}`);
	if (unreachable !== 0) problems.push(`${unreachable} blobs can't be reached`);
	const db = new Database(path, { readonly: true });
	const owners = {
		delta_checkpoints: "thread_id NOT IN (SELECT thread_id FROM delta_threads)",
		delta_writes: "checkpoint_pk NOT IN (SELECT pk FROM delta_checkpoints)",
		delta_bases: "checkpoint_pk NOT IN (SELECT pk FROM delta_checkpoints)",
	};
	for (const [table, isLost] of Object.entries(owners)) {
		const rows = db.prepare(`SELECT count(*) FROM ${table} WHERE ${isLost}`).pluck().get();
		if (rows !== 0) problems.push(`${rows} rows of ${table} belong to nothing`);
	}
	const free = Number(db.pragma("freelist_count", { simple: true }));
	if (free > 0) problems.push(`${free} pages are free`);
	db.close();
	return problems;
}

function sizeOf(path: string): number {
	const db = new Database(path, { readonly: true });
	const bytes = Number(db.pragma("page_count", { simple: true })) * Number(db.pragma("page_size", { simple: true }));
	db.close();
	return bytes;
}

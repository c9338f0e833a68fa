import { CheckpointError, quote } from "../../errors.ts";
import { allThreads, rowPages } from "../../storage/all-threads.ts";
import type { ThreadRow } from "../../storage/storage.ts";
import type { Cell } from "../cells.ts";
import { cellsOf, unpackHistory } from "../delta-channels/raw-history.ts";
import type { Engine } from "../engine.ts";
import { unpackRow } from "../rows.ts";
import type { Stats, ThreadInfo, ThreadPage } from "./types.ts";

/** More than any page of threads has. A database takes no larger numbers than this, or takes them for fractions. */
const MOST_THREADS = 2 ** 31 - 2;

export async function listThreads(engine: Engine, limit: number, after: string | undefined): Promise<ThreadPage> {
	if (!Number.isInteger(limit) || limit < 0)
		throw new CheckpointError("INVALID_OPTION", `\`limit\` must be a whole number from 0, got ${quote(limit)}.`);
	if (limit === 0) return { threads: [], next: undefined };
	const place = after === undefined ? undefined : readCursor(after);
	const rows = await engine.storage.listThreads(Math.min(limit, MOST_THREADS) + 1, place);
	const page = rows.slice(0, limit);
	const last = page.at(-1);
	return {
		threads: page.map(describeThread),
		next: rows.length > limit && last ? JSON.stringify([last.updatedAt, last.threadId]) : undefined,
	};
}

export async function getThread(engine: Engine, threadId: string): Promise<ThreadInfo | undefined> {
	const row = await engine.storage.getThread(threadId);
	return row && describeThread(row);
}

export async function readStats(engine: Engine): Promise<Stats> {
	const { storage } = engine;
	const { bytes, ...counts } = await storage.totals();
	const blobs = { whole: 0, patched: 0 };
	const channels = new Map<string, { channel: string; blobs: number; bytes: number }>();
	const families = new Map<number, string[]>();
	for await (const { family, threadId } of allThreads(storage))
		families.set(family, [...(families.get(family) ?? []), threadId]);
	for (const [family, threads] of families) {
		const { blobs: rows } = await storage.readFamily(family);
		const owners = new Map<number, string>();
		for (const threadId of threads)
			for await (const [channel, cell] of namedValues(engine, threadId))
				if (typeof cell === "number") owners.set(cell, channel);
		const byId = new Map(rows.map((row) => [row.id, row]));
		// A map goes on to what is added to it on the way.
		for (const [id, channel] of owners)
			for (const other of [byId.get(id)?.base, byId.get(id)?.source])
				if (other !== undefined && !owners.has(other)) owners.set(other, channel);
		for (const row of rows) {
			blobs[row.base === undefined ? "whole" : "patched"]++;
			const channel = owners.get(row.id) ?? "";
			const entry = channels.get(channel) ?? { channel, blobs: 0, bytes: 0 };
			channels.set(channel, { channel, blobs: entry.blobs + 1, bytes: entry.bytes + row.bytes });
		}
	}
	return { ...counts, blobs, bytes, channels: [...channels.values()].sort((a, b) => b.bytes - a.bytes) };
}

/** What the rows of a thread name or hold, and for which channel. */
async function* namedValues(engine: Engine, threadId: string): AsyncGenerator<[channel: string, Cell | undefined]> {
	const { checkpoints } = await engine.storage.readOutline(threadId);
	for await (const page of rowPages(engine.storage, checkpoints))
		for (const row of page) yield* unpackRow(row).manifest;
	const { writes, deltaBases } = await engine.storage.readThread(threadId);
	for (const { channel, blob } of writes) yield [channel, blob];
	for (const base of deltaBases) for (const cell of cellsOf(unpackHistory(base.data))) yield [base.channel, cell];
}

function describeThread({ threadId, createdAt, updatedAt, checkpoints, newest }: ThreadRow): ThreadInfo {
	return { threadId, createdAt: new Date(createdAt), updatedAt: new Date(updatedAt), checkpoints, head: newest };
}

function readCursor(after: string): { updatedAt: number; threadId: string } {
	try {
		const [updatedAt, threadId] = JSON.parse(after) as unknown[];
		if (typeof updatedAt === "number" && typeof threadId === "string") return { updatedAt, threadId };
	} catch {}
	throw new CheckpointError(
		"INVALID_OPTION",
		`\`after\` must be the \`next\` of an earlier page, got ${quote(after)}.`,
	);
}

import { setImmediate as nextTurn } from "node:timers/promises";
import { getHeapCodeStatistics } from "node:v8";
import { now } from "./clock.ts";
import { forEachInTurns, pass } from "./turns.ts";

/** How often a read is repeated, unless that takes longer than the budget; short ones for as long as it takes to tell. */
const READS = 25;
let readLeastMs = 250;
let readBudgetMs = 1000;
const READ_PARTS = 10;

/** Lets reads be repeated for a moment only, where the figures say nothing. */
export function readBriefly(): void {
	readLeastMs = 0;
	readBudgetMs = 20;
}

export function median(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	const middle = sorted.length >> 1;
	if (sorted.length % 2 === 1) return sorted[middle] as number;
	return ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/**
 * The mean of the middle half. A machine that others use too is quick for some seconds and slow for others, and a median
 * would be of the one kind or the other, however close it was.
 */
export function middleMean(values: readonly number[]): number {
	const sorted = [...values].sort((a, b) => a - b);
	const quarter = Math.floor(sorted.length / 4);
	const middle = sorted.slice(quarter, sorted.length - quarter);
	return middle.reduce((sum, value) => sum + value, 0) / middle.length;
}

/** The value that this many percent of all do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
	const sorted = [...values].sort((a, b) => a - b);
	return sorted[Math.ceil((sorted.length * percent) / 100) - 1] as number;
}

/** Milliseconds that the work takes. */
export async function time(work: () => Promise<unknown>): Promise<number> {
	const start = now();
	await work();
	return now() - start;
}

/** The mean time of some work on each item. */
export async function timeEach<T>(
	items: readonly T[],
	work: (item: T, index: number) => Promise<unknown>,
	parts?: number,
): Promise<number> {
	let total = 0;
	const visit = async (item: T, index: number) => {
		total += await time(() => work(item, index));
	};
	await forEachInTurns(items, visit, parts);
	return total / items.length;
}

/**
 * How long some work takes that can be repeated.
 *
 * @param budget milliseconds after which it is not repeated again
 */
export async function timeReads(work: () => Promise<unknown>, budget = readBudgetMs): Promise<number> {
	const times: number[] = [];
	let total = 0;
	const isEnough = (share: number) =>
		times.length < READS * share ? total >= budget * share && total > 0 : total >= readLeastMs * share;
	for (let part = 1; part <= READ_PARTS; part++) {
		while (!isEnough(part / READ_PARTS)) {
			const elapsed = await time(work);
			times.push(elapsed);
			total += elapsed;
		}
		await pass();
	}
	return middleMean(times);
}

/** Bytes that live objects and buffers take; what V8 has compiled meanwhile is not content. */
export async function heldBytes(): Promise<number> {
	if (gc === undefined) throw new Error("Run with --expose-gc.");
	// Buffers are let go of in a later turn than the objects that held them.
	for (let i = 0; i < 3; i++) {
		await nextTurn();
		gc();
	}
	const { heapUsed, external } = process.memoryUsage();
	const { code_and_metadata_size, bytecode_and_metadata_size } = getHeapCodeStatistics();
	return heapUsed + external - code_and_metadata_size - bytecode_and_metadata_size;
}

/** How long the work takes, and the longest time in it that the event loop stood still. */
export async function timeAndBlock(work: () => Promise<unknown>): Promise<{ elapsed: number; block: number }> {
	let last = now();
	let block = 0;
	const look = () => {
		const moment = now();
		block = Math.max(block, moment - last);
		last = moment;
	};
	let beat = setImmediate(function turn() {
		look();
		beat = setImmediate(turn);
	});
	const elapsed = await time(work);
	clearImmediate(beat);
	look();
	return { elapsed, block };
}

/** Goes through a listing like a server that has other things to do. Returns how many items there were. */
export async function countSlowly(items: AsyncIterable<unknown>): Promise<number> {
	let count = 0;
	for await (const _ of items) {
		count++;
		await nextTurn();
	}
	return count;
}

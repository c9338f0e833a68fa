import { type PackedId, unpackOptional } from "./ids.ts";

/**
 * Checksums of all that is not in an envelope: the columns of rows, and which rows belong together.
 *
 * The sum of a row tells whether a byte of it was changed. A total is the sum of the sums of several rows and tells, kept
 * elsewhere, whether one of them is missing: a damaged index hides rows that are sound. All are 32 bits with a sign, which
 * SQLite stores in four bytes.
 */

type Part = string | number | null | undefined;

/** FNV's. As it is odd, two rows that differ in one character never have the same sum. */
const PRIME = 0x0100_0193;
/** Stands for what is missing, which is not the same as what is empty. No character has this code. */
const MISSING = 0x1_0000;

/** The sum of a row's columns, in an order that is its table's own. */
export function sumOf(table: string, ...parts: readonly Part[]): number {
	let sum = addText(0, table);
	for (const part of parts) {
		if (typeof part === "string") sum = addText(sum, part);
		else if (typeof part === "number") sum = addNumber(sum, part);
		else sum = Math.imul(sum ^ MISSING, PRIME);
	}
	// Spread out over all bits, since sums are added up.
	sum = Math.imul(sum ^ (sum >>> 16), 0x85eb_ca6b);
	return Math.imul(sum ^ (sum >>> 13), 0xc2b2_ae35);
}

function addText(start: number, text: string): number {
	let sum = start;
	let isChecked = false;
	for (let i = 0; i < text.length; i++) {
		const code = text.charCodeAt(i);
		if (code >= 0xd800 && !isChecked) {
			if (!isPlain(text)) return addText(start, normalize(text));
			isChecked = true;
		}
		sum = Math.imul(sum ^ code, PRIME);
	}
	// Where one text ends and the next begins.
	return Math.imul(sum ^ (MISSING + 1 + text.length), PRIME);
}

function addNumber(sum: number, number: number): number {
	return Math.imul(Math.imul(sum ^ (number | 0), PRIME) ^ ((number / 2 ** 32) | 0), PRIME);
}

/** A database may have made one or several U+FFFD of half a surrogate pair. */
function normalize(text: string): string {
	return text.toWellFormed().replace(/\ufffd+/g, "\ufffd");
}

function isPlain(text: string): boolean {
	return text.isWellFormed() && !text.includes("\ufffd\ufffd");
}

/**
 * What a total of writes starts with, instead of zero: it takes four bytes from the beginning, so that a row does not
 * grow with its first write, which would leave pages half full.
 */
export const NO_WRITES = 0x4000_0000;

export function addSums(total: number, sum: number): number {
	return (total + sum) | 0;
}

export function subtractSums(total: number, sum: number): number {
	return (total - sum) | 0;
}

/**
 * What belonging to a thread adds to the sum of a row, apart from its columns: so that a copy of a row in another thread
 * has a sum that SQLite itself can calculate.
 */
export function sumOfThread(thread: number): number {
	return (Math.imul(thread | 0, 0x9e3779b1) + Math.imul((thread / 2 ** 32) | 0, 0x85ebca6b)) | 0;
}

/** SQL for the sum of two sums. */
export function sqlSum(a: string, b: string): string {
	const bits = `((${a} + ${b}) & 4294967295)`;
	return `(${bits} - ((${bits} >> 31) << 32))`;
}

/** Part of a thread's total over the index of checkpoint ids. */
export function sumOfKey(ns: string, id: string): number {
	return sumOf("key", ns, id);
}

/** Part of a thread's total over the index of forks: nothing for a row that is not in it. */
export function sumOfFork({ ns, parent, pk, fork }: { ns: string; parent: PackedId | null; pk: number; fork: number }) {
	return fork === 0 ? 0 : sumOf("fork", ns, unpackOptional(parent), pk);
}

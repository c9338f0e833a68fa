import assert from "node:assert/strict";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	DeltaBaseRow,
	FoundCheckpoint,
	WriteKey,
	WriteRow,
} from "../../storage/storage.ts";

/** Rows with the fields that the interface names and no others, and bytes of one class: fit to be compared. */
function plainRow({ threadId, ns, id, parentId, runId, source, step, blobs, head }: CheckpointRow) {
	return { threadId, ns, id, parentId, runId, source, step, blobs: [...blobs], head: plainBytes(head) };
}

export function plainFound(row: FoundCheckpoint) {
	return { ...plainRow(row), stamp: row.stamp };
}

export function plainWrite(write: WriteRow) {
	const { threadId, ns, id, taskId, idx, taskPath, channel, generation, runId, actor, type, blob } = write;
	const value = plainBytes(write.value);
	return { threadId, ns, id, taskId, idx, taskPath, channel, generation, runId, actor, type, blob, value };
}

export function plainBase({ threadId, ns, id, channel, data }: DeltaBaseRow) {
	return { threadId, ns, id, channel, data: plainBytes(data) };
}

export function plainBlob({ id, base, source, type, data }: BlobRow) {
	return { id, base, source, type, data: plainBytes(data) };
}

export function plainKey({ threadId, ns, id }: CheckpointKey) {
	return { threadId, ns, id };
}

export function plainWriteKey({ threadId, ns, id, taskId, idx, generation }: WriteKey) {
	return { threadId, ns, id, taskId, idx, generation };
}

function plainBytes(data: Uint8Array): Uint8Array {
	assert.ok(data instanceof Uint8Array, `bytes came back as ${typeof data}`);
	return Uint8Array.from(data);
}

/** Rows that come in any order, in one that does not depend on it. */
export function sorted<T extends object>(rows: readonly T[]): T[] {
	const withKey = rows.map((row) => ({ row, key: JSON.stringify(sortable(row)) }));
	return withKey.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)).map(({ row }) => row);
}

/** The parts that tell rows apart: bytes never do. */
function sortable(row: object): unknown[] {
	return Object.values(row).filter((value) => typeof value === "string" || typeof value === "number");
}

/** Compares checkpoints, in order. */
export function assertRows(actual: readonly (CheckpointRow | undefined)[], expected: readonly CheckpointRow[]): void {
	assert.deepEqual(
		actual.map((row) => row && plainRow(row)),
		expected.map(plainRow),
	);
}

/** Compares writes that come in any order. */
export function assertWrites(actual: readonly WriteRow[], expected: readonly WriteRow[]): void {
	assert.deepEqual(sorted(actual.map(plainWrite)), sorted(expected.map(plainWrite)));
}

/** Compares delta bases that come in any order. */
export function assertBases(actual: readonly DeltaBaseRow[], expected: readonly DeltaBaseRow[]): void {
	assert.deepEqual(sorted(actual.map(plainBase)), sorted(expected.map(plainBase)));
}

/** Compares blobs that come in any order. */
export function assertBlobs(actual: readonly BlobRow[], expected: readonly BlobRow[]): void {
	assert.deepEqual(sorted(actual.map(plainBlob)), sorted(expected.map(plainBlob)));
}

/** Ids are compared by their bytes in UTF-8, which is by their code points. */
export function compareIds(a: string, b: string): number {
	return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** The order of a scan. */
export function compareKeys(a: CheckpointKey, b: CheckpointKey): number {
	return compareIds(b.id, a.id) || compareIds(a.threadId, b.threadId) || compareIds(a.ns, b.ns);
}

/** In an order that is no order, but always the same. */
export function shuffled<T>(items: readonly T[]): T[] {
	const result = [...items];
	let state = 7;
	for (let i = result.length - 1; i > 0; i--) {
		state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
		const j = state % (i + 1);
		[result[i], result[j]] = [result[j] as T, result[i] as T];
	}
	return result;
}

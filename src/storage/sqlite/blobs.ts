import { CheckpointError } from "../../errors.ts";
import type { BlobRow } from "../storage.ts";
import type { SqliteSession } from "./session.ts";
import { sumOf } from "./sums.ts";

/** A row of `delta_blob` without its bytes, which have a checksum of their own. */
export interface SqlBlob {
	readonly id: number;
	readonly family: number;
	readonly base: number | null;
	readonly source: number | null;
	readonly type: string | null;
	readonly sum: number;
}

export function addBlob(session: SqliteSession, family: number, blob: BlobRow): void {
	const { id, base = null, source = null, type = null, data } = blob;
	const sum = sumOfBlob({ id, family, base, source, type });
	session.sql.insertBlob.run(id, family, base, source, type, sum, data);
}

/**
 * Throws unless a row is as it was stored.
 *
 * @param family whose blobs were looked for: one of another family may still be needed there
 */
export function checkBlob(row: unknown, family?: number): SqlBlob {
	const blob = row as SqlBlob;
	if (blob.sum === sumOfBlob(blob) && (family === undefined || blob.family === family)) return blob;
	throw new CheckpointError("CORRUPT", `The row of blob ${blob.id} is damaged: call repair().`, {
		place: { blobId: blob.id },
	});
}

export function sumOfBlob({ id, family, base, source, type }: Omit<SqlBlob, "sum">): number {
	return sumOf("blob", id, family, base, source, type);
}

export function toBlob(row: unknown): BlobRow | undefined {
	if (row === undefined) return undefined;
	const { id, base, source, type } = checkBlob(row);
	const { data } = row as BlobRow;
	return { id, base: base ?? undefined, source: source ?? undefined, type: type ?? undefined, data };
}

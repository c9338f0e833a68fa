import type { ListedBlob } from "../../storage/storage.ts";
import { cellsOf, unpackHistory } from "../delta-channels/raw-history.ts";
import type { Engine } from "../engine.ts";

/** Blobs that are removed in one go: writers wait for no more than that. */
const BATCH_BLOBS = 500;

/** Removes the blobs of a family that none of its threads can reach. */
export async function collectFamily(engine: Engine, family: number): Promise<{ blobs: number; bytes: number }> {
	const dead = await unreachedBlobs(engine, family);
	for (let i = 0; i < dead.length; i += BATCH_BLOBS) {
		const ids = dead.slice(i, i + BATCH_BLOBS).map(({ id }) => id);
		await engine.storage.removeBlobs(family, ids);
		for (const id of ids) engine.blobs.forget(id);
	}
	return { blobs: dead.length, bytes: dead.reduce((sum, { bytes }) => sum + bytes, 0) };
}

/**
 * The blobs of a family that none of its threads can reach, and none ever will.
 *
 * Safe beside writers in any process: what no row names at one moment, none will name later. A put takes over only blobs
 * that some row of its thread names, and is refused if rows of the thread were deleted since it looked; so is a copy.
 */
export async function unreachedBlobs({ storage }: Engine, family: number): Promise<ListedBlob[]> {
	const { blobs, named, deltaBases } = await storage.readFamily(family);
	const reached = new Set(named);
	for (const base of deltaBases)
		for (const cell of cellsOf(unpackHistory(base.data))) if (typeof cell === "number") reached.add(cell);
	const rows = new Map(blobs.map((row) => [row.id, row]));
	// A set goes on to what is added to it on the way.
	for (const id of reached) {
		const { base, source } = rows.get(id) ?? {};
		if (base !== undefined) reached.add(base);
		if (source !== undefined) reached.add(source);
	}
	return blobs.filter(({ id }) => !reached.has(id));
}

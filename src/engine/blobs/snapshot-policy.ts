/**
 * What reading one more row costs, in bytes read: a patch is charged this much besides its own length. A higher
 * figure means shorter chains, quicker reads and more whole copies. With this one a chat whose messages have some 400
 * bytes is stored whole whenever it is four times as long, so that its share of whole copies is the same at any length.
 */
export const PATCH_ROW_COST = 64;
/** What the blob that a patch would build on costs to read. */
export interface ChainCost {
	/** Bytes and rows of the patches since the last whole blob, with what each row costs. */
	readonly patches: number;
	/** Bytes of that whole blob. */
	readonly whole: number;
}

/**
 * Whether a new value is better stored whole than as a patch.
 *
 * Patches are added while the whole chain costs no more to read than twice the value itself. And since a whole blob is
 * written only after patches of about its own size, or when the value has shrunk, a history costs at most about twice
 * its new content.
 */
export function shouldStoreWhole(wholeBytes: number, patchCost: number, base: ChainCost): boolean {
	// A value that has grown since is not charged for it: what it grew by is in the patches already.
	const start = Math.max(base.whole, wholeBytes);
	return start + base.patches + patchCost >= 2 * wholeBytes;
}

/** What it costs to read a patch, with the row that it copies bytes from, if there is one. */
export function patchCost(patch: Uint8Array, source: Uint8Array | undefined): number {
	return patch.length + PATCH_ROW_COST + (source === undefined ? 0 : source.length + PATCH_ROW_COST);
}

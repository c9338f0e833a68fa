/**
 * What reading one more row costs, in bytes read: a patch is charged this much besides its own length. A higher
 * figure means shorter chains, quicker reads and more whole copies.
 */
export const PATCH_ROW_COST = 96;

/** What the blob that a patch would build on costs to read. */
export interface ChainCost {
	/** Bytes and rows of the patches since the last whole blob, rows at {@link PATCH_ROW_COST} each. */
	readonly patches: number;
}

/**
 * Whether a new value is better stored whole than as a patch.
 *
 * Patches are added while together they cost no more to read than the value itself. So a read costs at most about
 * twice the reading of a whole blob; and since a whole blob is written only after patches of about its own size, a
 * history costs at most about twice its new content.
 */
export function shouldStoreWhole(wholeBytes: number, patchBytes: number, base: ChainCost): boolean {
	return base.patches + patchCost(patchBytes) >= wholeBytes;
}

export function patchCost(patchBytes: number): number {
	return patchBytes + PATCH_ROW_COST;
}

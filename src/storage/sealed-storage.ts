import type { Identity, Sealer } from "../seal/sealer.ts";
import type {
	BlobRow,
	CheckpointKey,
	CheckpointRow,
	CopyBatch,
	DeltaBaseRow,
	FoundCheckpoint,
	PutBatch,
	PutResult,
	RemoveBatch,
	Replacement,
	RowCount,
	ScanQuery,
	Storage,
	StorageTotals,
	ThreadRow,
	WriteKey,
	WriteRow,
} from "./storage.ts";

/** Rows that are looked at together while keys are rotated: a batch is one transaction. */
const ROTATION_BATCH = 200;

/** A storage whose bytes are in envelopes: checked against damage, compressed, encrypted. */
export class SealedStorage implements Storage {
	readonly #inner: Storage;
	readonly #sealer: Sealer;

	constructor(inner: Storage, sealer: Sealer) {
		this.#inner = inner;
		this.#sealer = sealer;
	}

	reserveIds(count: number): Promise<number> {
		return this.#inner.reserveIds(count);
	}

	async getCheckpoint(key: CheckpointKey): Promise<FoundCheckpoint | undefined> {
		return this.#openCheckpoint(await this.#inner.getCheckpoint(key));
	}

	async getLatest(threadId: string, ns: string): Promise<FoundCheckpoint | undefined> {
		return this.#openCheckpoint(await this.#inner.getLatest(threadId, ns));
	}

	async scan(query: ScanQuery): Promise<FoundCheckpoint[]> {
		return this.#openCheckpoints(await this.#inner.scan(query));
	}

	async getPath(key: CheckpointKey, limit: number): Promise<FoundCheckpoint[]> {
		return this.#openCheckpoints(await this.#inner.getPath(key, limit));
	}

	async getChildren(threadId: string, ns: string, parentIds: readonly string[]): Promise<FoundCheckpoint[]> {
		return this.#openCheckpoints(await this.#inner.getChildren(threadId, ns, parentIds));
	}

	findRuns(runIds: readonly string[]): Promise<{ checkpoints: CheckpointKey[]; writes: WriteKey[] }> {
		return this.#inner.findRuns(runIds);
	}

	async getWrites(keys: readonly CheckpointKey[]): Promise<WriteRow[]> {
		return (await this.#inner.getWrites(keys)).map((row) => this.#openWrite(row));
	}

	async getOrphanWrites(threadId: string, ns: string, before: string): Promise<WriteRow[]> {
		return (await this.#inner.getOrphanWrites(threadId, ns, before)).map((row) => this.#openWrite(row));
	}

	async getThreadWrites(threadId: string): Promise<WriteRow[]> {
		return (await this.#inner.getThreadWrites(threadId)).map((row) => this.#openWrite(row));
	}

	async getDeltaBases(keys: readonly CheckpointKey[]): Promise<DeltaBaseRow[]> {
		return (await this.#inner.getDeltaBases(keys)).map((row) => this.#openBase(row));
	}

	async getThreadDeltaBases(threadId: string): Promise<DeltaBaseRow[]> {
		return (await this.#inner.getThreadDeltaBases(threadId)).map((row) => this.#openBase(row));
	}

	async getBlobs(ids: readonly number[]): Promise<BlobRow[]> {
		const rows = await this.#inner.getBlobs(ids);
		return rows.map((row) => ({ ...row, data: this.#sealer.open(row.data, blobIdentity(row)) }));
	}

	getThread(threadId: string): Promise<ThreadRow | undefined> {
		return this.#inner.getThread(threadId);
	}

	listThreads(limit: number, after: { updatedAt: number; threadId: string } | undefined): Promise<ThreadRow[]> {
		return this.#inner.listThreads(limit, after);
	}

	getFamily(family: number): Promise<ThreadRow[]> {
		return this.#inner.getFamily(family);
	}

	listBlobs(family: number): Promise<{ id: number; base: number | undefined; bytes: number }[]> {
		return this.#inner.listBlobs(family);
	}

	totals(): Promise<StorageTotals> {
		return this.#inner.totals();
	}

	async put(batch: PutBatch): Promise<PutResult | undefined> {
		const { checkpoint, blobs, writes, deltaBases = [] } = batch;
		return this.#inner.put({
			...batch,
			checkpoint: checkpoint && this.#sealCheckpoint(checkpoint),
			blobs: blobs.map((row) => ({ ...row, data: this.#sealer.seal(row.data, blobIdentity(row)) })),
			writes: writes.map((row) => this.#sealWrite(row)),
			deltaBases: deltaBases.map((row) => this.#sealBase(row)),
		});
	}

	async remove(batch: RemoveBatch): Promise<RowCount | undefined> {
		return this.#inner.remove({ ...batch, deltaBases: batch.deltaBases.map((row) => this.#sealBase(row)) });
	}

	/** An encrypted row opens only in its own thread, so that a copy of it has to be sealed for the other. */
	async copy(batch: CopyBatch): Promise<RowCount | undefined> {
		const threadId = batch.target;
		const deltaBases = batch.deltaBases.map((row) => this.#sealBase({ ...row, threadId }));
		if (!this.#sealer.encrypts) return this.#inner.copy({ ...batch, deltaBases });
		const rows = await this.#rowsToCopy(batch);
		return this.#inner.copy({
			...batch,
			deltaBases: [...rows.deltaBases.map((row) => this.#sealBase({ ...row, threadId })), ...deltaBases],
			rows: {
				checkpoints: rows.checkpoints.map((row) => this.#sealCheckpoint({ ...row, threadId })),
				writes: rows.writes.map((row) => this.#sealWrite({ ...row, threadId })),
			},
		});
	}

	async #rowsToCopy({ source, checkpoints }: CopyBatch) {
		const all = await this.#allCheckpoints(source);
		const parents =
			checkpoints && new Map(checkpoints.map(({ key, parentId }) => [JSON.stringify([key.ns, key.id]), parentId]));
		const isChosen = ({ ns, id }: CheckpointKey) => parents === undefined || parents.has(JSON.stringify([ns, id]));
		const chosen = all.filter(isChosen);
		return {
			checkpoints: chosen.map((row) =>
				parents ? { ...row, parentId: parents.get(JSON.stringify([row.ns, row.id])) } : row,
			),
			writes: (await this.getThreadWrites(source)).filter(isChosen),
			deltaBases: (await this.getThreadDeltaBases(source)).filter(isChosen),
		};
	}

	async #allCheckpoints(threadId: string): Promise<FoundCheckpoint[]> {
		const rows: FoundCheckpoint[] = [];
		for (;;) {
			const page = await this.scan({ threadId, after: rows.at(-1), limit: ROTATION_BATCH });
			rows.push(...page);
			if (page.length < ROTATION_BATCH) return rows;
		}
	}

	removeThread(threadId: string): Promise<RowCount> {
		return this.#inner.removeThread(threadId);
	}

	removeBlobs(family: number, ids: readonly number[]): Promise<void> {
		return this.#inner.removeBlobs(family, ids);
	}

	replaceBytes(replacements: readonly Replacement[]): Promise<number> {
		return this.#inner.replaceBytes(replacements);
	}

	clear(): Promise<void> {
		return this.#inner.clear();
	}

	close(): Promise<void> {
		return this.#inner.close();
	}

	/**
	 * Seals every row again that is not under the current key, a batch at a time. Rows that change meanwhile are sealed
	 * by whoever changes them. Can be stopped and started again at any time: what is done is not looked at twice.
	 */
	async *rotate(): AsyncGenerator<{ threadId: string; rows: number }> {
		for await (const { threadId, family } of this.#threads()) {
			const replacements: Replacement[] = [];
			const seal = (replacement: Replacement, identity: Identity) => {
				if (!this.#sealer.isOutdated(replacement.from)) return;
				const to = this.#sealer.seal(this.#sealer.open(replacement.from, identity), identity);
				replacements.push({ ...replacement, to });
			};
			for (const row of await this.#rawCheckpoints(threadId))
				seal({ kind: "checkpoint", key: row, from: row.head, to: row.head }, checkpointIdentity(row));
			for (const row of await this.#inner.getThreadWrites(threadId))
				if (typeof row.value !== "number")
					seal({ kind: "write", key: row, from: row.value, to: row.value }, writeIdentity(row));
			for (const row of await this.#inner.getThreadDeltaBases(threadId))
				seal({ kind: "deltaBase", key: row, channel: row.channel, from: row.data, to: row.data }, baseIdentity(row));
			for (const { id } of await this.#inner.listBlobs(family))
				for (const row of await this.#inner.getBlobs([id]))
					if (row.id === id) seal({ kind: "blob", id, from: row.data, to: row.data }, blobIdentity(row));
			let rows = 0;
			for (let i = 0; i < replacements.length; i += ROTATION_BATCH)
				rows += await this.#inner.replaceBytes(replacements.slice(i, i + ROTATION_BATCH));
			yield { threadId, rows };
		}
	}

	async *#threads(): AsyncGenerator<ThreadRow> {
		let after: ThreadRow | undefined;
		do {
			const page = await this.#inner.listThreads(ROTATION_BATCH, after);
			yield* page;
			after = page.at(-1);
		} while (after !== undefined);
	}

	async #rawCheckpoints(threadId: string): Promise<FoundCheckpoint[]> {
		const rows: FoundCheckpoint[] = [];
		for (;;) {
			const page = await this.#inner.scan({ threadId, after: rows.at(-1), limit: ROTATION_BATCH });
			rows.push(...page);
			if (page.length < ROTATION_BATCH) return rows;
		}
	}

	#openCheckpoints(rows: readonly FoundCheckpoint[]): FoundCheckpoint[] {
		return rows.map((row) => this.#openCheckpoint(row) as FoundCheckpoint);
	}

	#openCheckpoint(row: FoundCheckpoint | undefined): FoundCheckpoint | undefined {
		return row && { ...row, head: this.#sealer.open(row.head, checkpointIdentity(row)) };
	}

	#sealCheckpoint<T extends CheckpointRow>(row: T): T {
		return { ...row, head: this.#sealer.seal(row.head, checkpointIdentity(row)) };
	}

	#openWrite(row: WriteRow): WriteRow {
		if (typeof row.value === "number") return row;
		return { ...row, value: this.#sealer.open(row.value, writeIdentity(row)) };
	}

	#sealWrite<T extends Omit<WriteRow, "generation">>(row: T): T {
		if (typeof row.value === "number") return row;
		return { ...row, value: this.#sealer.seal(row.value, writeIdentity(row)) };
	}

	#openBase(row: DeltaBaseRow): DeltaBaseRow {
		return { ...row, data: this.#sealer.open(row.data, baseIdentity(row)) };
	}

	#sealBase(row: DeltaBaseRow): DeltaBaseRow {
		return { ...row, data: this.#sealer.seal(row.data, baseIdentity(row)) };
	}
}

function checkpointIdentity({ threadId, ns, id }: CheckpointKey): Identity {
	return (isBound) => JSON.stringify(["checkpoint", isBound ? threadId : null, ns, id]);
}

function writeIdentity({ threadId, ns, id, taskId, idx, channel }: Omit<WriteRow, "generation">): Identity {
	return (isBound) => JSON.stringify(["write", isBound ? threadId : null, ns, id, taskId, idx, channel]);
}

function baseIdentity({ threadId, ns, id, channel }: DeltaBaseRow): Identity {
	return (isBound) => JSON.stringify(["delta base", isBound ? threadId : null, ns, id, channel]);
}

/** Blobs belong to no thread. */
function blobIdentity({ id, base }: { id: number; base: number | undefined }): Identity {
	return () => JSON.stringify(["blob", id, base ?? null]);
}

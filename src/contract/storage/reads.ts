import type {
	CheckpointKey,
	DeltaBaseRow,
	FoundCheckpoint,
	ListedBlob,
	Scan,
	Storage,
	WriteRow,
} from "../../storage/storage.ts";
import { plainKey } from "./plain.ts";

/** More than any test stores. */
export const ALL = 1_000_000;

export async function scanRows(storage: Storage, scan: Scan): Promise<readonly FoundCheckpoint[]> {
	return (await storage.read(scan, "rows")).checkpoints;
}

/** The keys that a scan finds, in its order. */
export async function scanKeys(storage: Storage, scan: Partial<Scan> = {}): Promise<CheckpointKey[]> {
	return (await scanRows(storage, { limit: ALL, ...scan })).map(plainKey);
}

export async function findRow(storage: Storage, key: CheckpointKey): Promise<FoundCheckpoint | undefined> {
	return (await storage.read([key], "rows")).checkpoints[0];
}

export async function newestRow(storage: Storage, threadId: string, ns: string): Promise<FoundCheckpoint | undefined> {
	return (await scanRows(storage, { threadId, ns, limit: 1 }))[0];
}

export async function pathIds(storage: Storage, key: CheckpointKey, limit = ALL): Promise<string[]> {
	return (await storage.readPath(key, limit)).path.map(({ id }) => id);
}

/** The writes under one key, with or without a checkpoint. */
export async function writesAt(storage: Storage, key: CheckpointKey): Promise<WriteRow[]> {
	return (await threadWrites(storage, key.threadId)).filter(({ ns, id }) => ns === key.ns && id === key.id);
}

export async function threadWrites(storage: Storage, threadId: string): Promise<readonly WriteRow[]> {
	return (await storage.readThread(threadId)).writes;
}

export async function basesAt(storage: Storage, key: CheckpointKey): Promise<DeltaBaseRow[]> {
	return (await threadBases(storage, key.threadId)).filter(({ ns, id }) => ns === key.ns && id === key.id);
}

export async function threadBases(storage: Storage, threadId: string): Promise<readonly DeltaBaseRow[]> {
	return (await storage.readThread(threadId)).deltaBases;
}

export async function familyBlobs(storage: Storage, family: number): Promise<readonly ListedBlob[]> {
	return (await storage.readFamily(family)).blobs;
}

export async function blobIds(storage: Storage, family: number): Promise<number[]> {
	return (await familyBlobs(storage, family)).map(({ id }) => id).sort((a, b) => a - b);
}

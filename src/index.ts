export type { Classes, ClassHooks } from "./codec/class-registry.ts";
export { decodeOfficial } from "./codec/official-json.ts";
export { CheckpointError, type CheckpointErrorCode, ConcurrencyError, type Place } from "./errors.ts";
export { DeltaSaver, type SaverOptions } from "./saver/delta-saver.ts";
export { MemorySaver } from "./saver/memory-saver.ts";
export type {
	CheckpointInfo,
	Copied,
	CopyThreadOptions,
	DeleteForRunsOptions,
	ListThreadsOptions,
	PruneOptions,
	Removed,
	Stats,
	ThreadInfo,
	ThreadPage,
} from "./saver/types.ts";
export { checkHead } from "./storage/guard.ts";
export type * from "./storage/storage.ts";

export type { Classes, ClassHooks } from "./codec/class-registry.ts";
export type { Compacted, CompactProgress } from "./engine/maintenance/compact.ts";
export type {
	CheckpointInfo,
	Copied,
	CopyThreadOptions,
	Damage,
	DeleteForRunsOptions,
	ListThreadsOptions,
	PruneOptions,
	Removed,
	RepairReport,
	Stats,
	ThreadInfo,
	ThreadPage,
	VerifyReport,
} from "./engine/maintenance/types.ts";
export { CheckpointError, type CheckpointErrorCode, ConcurrencyError, type Place } from "./errors.ts";
export { type CompactOptions, DeltaSaver, type ProgressOptions, type SaverOptions } from "./saver/delta-saver.ts";
export { MemorySaver } from "./saver/memory-saver.ts";
export { checkHead } from "./storage/guard.ts";
export type * from "./storage/storage.ts";

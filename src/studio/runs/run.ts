import { v7 as uuid7 } from "@langchain/core/utils/uuid";
import type { DeltaSaver } from "../../saver/delta-saver.ts";
import type { Json } from "../http/fields.ts";
import type { Contribution, ThreadFeed } from "../protocol/thread-feed.ts";
import type { FinalStatus, RunEnd, RunRecord, StoredRun } from "../threads/records.ts";
import { EventLog, type Retention } from "./event-log.ts";
import type { RunRequest } from "./run-request.ts";
import { withoutSecrets } from "./secrets.ts";

export type CancelAction = "interrupt" | "rollback";

/** Why a run was stopped. */
export type StopReason = CancelAction | "timeout" | "failure";

/** Where a run happens. */
export interface RunPlace {
	readonly graphId: string;
	readonly assistantId: string;
	readonly threadId: string;
	/** Who asked for it; all whom nobody tells apart are one. */
	readonly caller: string;
	/** Where it leaves what it did; `undefined` if nothing is to be kept. */
	readonly saver: DeltaSaver | undefined;
	readonly metadata: Json;
	readonly configurable: Json;
}

/** One run of a graph, from the moment it was asked for. */
export class Run {
	readonly id = uuid7();
	readonly request: RunRequest;
	readonly place: RunPlace;
	readonly log: EventLog;
	readonly createdAt = new Date();
	/** Settles when it has ended, however that was, and what it left is stored. */
	readonly done: Promise<void>;
	status: "pending" | "running" | FinalStatus = "pending";
	/** The last values that it streamed. */
	values: unknown;
	end: RunEnd | undefined;
	/** Where clients of the thread protocol learn of it, if there are any. */
	feed: ThreadFeed | undefined;
	/** What it left there. */
	fed: Contribution | undefined;
	/** What the client that stopped it said of it, and when. */
	cancelReason: string | undefined;
	readonly #stop = new AbortController();
	#settle: () => void = () => {};

	/** @param retention which of its events are held for who asks for them later */
	constructor(request: RunRequest, place: RunPlace, retention: Retention) {
		this.request = request;
		this.place = place;
		this.log = new EventLog(retention);
		this.done = new Promise((resolve) => {
			this.#settle = resolve;
		});
	}

	get isInFlight(): boolean {
		return this.status === "pending" || this.status === "running";
	}

	/** Aborts when the run is to stop. */
	get signal(): AbortSignal {
		return this.#stop.signal;
	}

	get stopReason(): StopReason | undefined {
		return this.#stop.signal.reason;
	}

	/** Asks it to stop. The first reason counts. */
	stop(reason: StopReason, cancelReason?: string): void {
		if (!this.signal.aborted && cancelReason !== undefined)
			this.cancelReason = `${cancelReason}:${new Date().toISOString()}`;
		this.#stop.abort(reason);
	}

	/** @param onForgotten called when there is nothing left that somebody could ask for */
	finish(end: RunEnd, onForgotten: () => void): void {
		this.status = end.status;
		this.end = end;
		this.#settle();
		this.log.end(onForgotten);
	}

	/** As it is stored. */
	get record(): RunRecord {
		const { assistantId, saver } = this.place;
		const { kwargs, checkpoint } = this.request;
		const metadata = withoutSecrets(this.place.metadata);
		const configurable = { ...withoutSecrets(this.place.configurable), ...checkpoint, run_id: this.id };
		const config = { ...withoutSecrets(this.request.config), configurable, metadata };
		const { context } = withoutSecrets({ context: kwargs.context });
		return {
			run_id: this.id,
			assistant_id: assistantId,
			metadata,
			kwargs: { ...kwargs, context, config, temporary: saver === undefined },
			multitask_strategy: this.request.strategy,
			created_at: this.createdAt.toISOString(),
		};
	}

	/** @param status another than it has now: it may have started since it was made */
	describe(status = this.status): Json {
		return describeRun(this.place.threadId, this.record, status, this.end);
	}
}

/** A run as the API tells it that is not in memory any more. One that never ended died with its server. */
export function describeStoredRun(threadId: string, { record, end }: StoredRun): Json {
	return describeRun(threadId, record, end?.status ?? "interrupted", end);
}

function describeRun(threadId: string, record: RunRecord, status: Run["status"], end: RunEnd | undefined): Json {
	const { run_id, assistant_id, metadata, kwargs, multitask_strategy, created_at } = record;
	const updated_at = end?.updated_at ?? created_at;
	return {
		...{ run_id, thread_id: threadId, assistant_id, metadata, status, kwargs, multitask_strategy },
		...{ created_at, updated_at },
		...(end?.cancel_reason !== undefined && { cancel_reason: end.cancel_reason }),
	};
}

import { Assistants } from "./graphs/assistants.ts";
import { Graphs } from "./graphs/graphs.ts";
import type { StudioOptions } from "./options.ts";
import { Feeds } from "./protocol/feeds.ts";
import { Runs } from "./runs/runs.ts";
import { type Limits, readLimits } from "./security/limits.ts";
import { States } from "./states/states.ts";
import { ThreadDescription } from "./threads/describe.ts";
import { IdleThreads } from "./threads/idle-threads.ts";
import { type FoundThread, Threads } from "./threads/threads.ts";

/** All that the routes of one server work with. */
export class Studio {
	readonly graphs: Graphs;
	readonly assistants: Assistants;
	readonly threads: Threads;
	readonly states: States;
	readonly runs: Runs;
	readonly feeds = new Feeds();
	readonly readOnly: boolean;
	readonly limits: Required<Limits>;
	readonly #idle = new IdleThreads();

	constructor({ graphs, checkpointer, store, limits, readOnly = false }: StudioOptions) {
		this.readOnly = readOnly;
		this.limits = readLimits(limits);
		this.graphs = new Graphs(graphs, { checkpointer, store });
		this.assistants = new Assistants(this.graphs);
		this.threads = new Threads(this.graphs);
		this.states = new States(this.graphs, this.threads);
		this.runs = new Runs(this.graphs, this.assistants, this.threads, this.feeds, this.limits);
	}

	describe(thread: FoundThread): ThreadDescription {
		const { graphs, threads } = this;
		const isBusy = this.runs.isBusy(thread.threadId);
		return new ThreadDescription(thread, { graphs, threads, idle: this.#idle, isBusy });
	}
}

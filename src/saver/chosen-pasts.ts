import type { RunnableConfig } from "@langchain/core/runnables";
import type { CheckpointMetadata } from "@langchain/langgraph-checkpoint";

/** A checkpoint to go on from, or, without an id, the beginning of a namespace. */
export interface Past {
	readonly threadId: string;
	readonly ns: string;
	readonly id: string | undefined;
}

/**
 * Tells branches that somebody chose to start from those that a race would start: which runs and state updates asked
 * for a checkpoint by its id although it was not the newest one any more.
 */
export class ChosenPasts {
	/** What was chosen, by an object that comes back with the puts that follow. */
	readonly #chosen = new WeakMap<object, Set<string>>();

	/**
	 * All calls of a run carry one metadata object. A state update hands back the `parents` of the tuple that it read.
	 *
	 * @param found metadata of the checkpoint that was asked for, if it is there
	 */
	remember(config: RunnableConfig, found: CheckpointMetadata | undefined, past: Past): void {
		for (const caller of callersOf(config, found)) {
			const chosen = this.#chosen.get(caller) ?? new Set();
			this.#chosen.set(caller, chosen.add(keyOf(past)));
		}
	}

	/** Whether a put is a branch that its caller chose to start. LangGraph itself calls some of them forks. */
	isChosen(config: RunnableConfig, metadata: CheckpointMetadata | undefined, past: Past): boolean {
		if (metadata?.source === "fork") return true;
		return callersOf(config, metadata).some((caller) => this.#chosen.get(caller)?.has(keyOf(past)));
	}
}

function callersOf(config: RunnableConfig, metadata: CheckpointMetadata | undefined): object[] {
	const candidates: unknown[] = [config.metadata, metadata?.parents];
	return candidates.filter((one): one is object => typeof one === "object" && one !== null);
}

function keyOf({ threadId, ns, id }: Past): string {
	return JSON.stringify([threadId, ns, id]);
}

import type { RunnableConfig } from "@langchain/core/runnables";
import {
	BaseCheckpointSaver,
	type Checkpoint,
	type CheckpointMetadata,
	type CheckpointPendingWrite,
	type CheckpointTuple,
	copyCheckpoint,
	type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { median, time } from "./measure.ts";
import { forEachInTurns } from "./turns.ts";
import type { Measures, Saver } from "./workload.ts";

/**
 * Keeps the head of the last thread as it was given, and stores nothing: a run on it costs what LangGraph itself costs.
 */
export class ReferenceSaver extends BaseCheckpointSaver<number> {
	#head: CheckpointTuple | undefined;
	#writes = new Map<string, CheckpointPendingWrite[]>();

	override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
		const isOther = this.#head?.config.configurable?.thread_id !== config.configurable?.thread_id;
		if (this.#head === undefined || isOther) return undefined;
		const { checkpoint } = this.#head;
		const pendingWrites = this.#writes.get(checkpoint.id) ?? [];
		return { ...this.#head, checkpoint: copyCheckpoint(checkpoint), pendingWrites };
	}

	override async *list(config: RunnableConfig): AsyncGenerator<CheckpointTuple> {
		const head = await this.getTuple(config);
		if (head !== undefined) yield head;
	}

	override async put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) {
		const { thread_id, checkpoint_ns = "", checkpoint_id } = config.configurable ?? {};
		const at = (id: string) => ({ configurable: { thread_id, checkpoint_ns, checkpoint_id: id } });
		const parentConfig = checkpoint_id === undefined ? undefined : at(checkpoint_id);
		this.#head = { config: at(checkpoint.id), checkpoint, metadata, parentConfig };
		this.#writes = new Map([[checkpoint.id, this.#writes.get(checkpoint.id) ?? []]]);
		return this.#head.config;
	}

	override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
		const id = config.configurable?.checkpoint_id;
		const added = writes.map(([channel, value]): CheckpointPendingWrite => [taskId, channel, value]);
		this.#writes.set(id, [...(this.#writes.get(id) ?? []), ...added]);
	}

	override async deleteThread(): Promise<void> {
		this.#head = undefined;
	}
}

/**
 * Takes turns on a saver and, in between, the same on a {@link ReferenceSaver}: what the first takes longer is the
 * saver's. As both take many times as long as the difference, the median of all turns tells it, not their sum. A machine
 * that others use too has quick seconds and slow ones: of whole turns it is the mean that the share of these hardly moves,
 * since the other side's turns lie between.
 *
 * @param prepare makes what takes a turn on a saver
 */
export async function timeTurns(
	saver: Saver,
	turns: number,
	prepare: (saver: Saver) => (turn: number) => Promise<unknown>,
): Promise<Measures> {
	const takeTurn = prepare(saver);
	const takeFreeTurn = prepare(new ReferenceSaver());
	const times: number[] = [];
	const differences: number[] = [];
	const takeBoth = async (_: unknown, turn: number) => {
		const free = await time(() => takeFreeTurn(turn));
		const whole = await time(() => takeTurn(turn));
		times.push(whole);
		differences.push(whole - free);
	};
	await forEachInTurns(Array.from({ length: turns }), takeBoth, turns);
	return { saver: median(differences), turn: times.reduce((sum, one) => sum + one, 0) / turns };
}

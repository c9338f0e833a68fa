import { createHash } from "node:crypto";
import { type CheckpointTuple, uuid6 } from "@langchain/langgraph-checkpoint";
import type { DeltaSaver } from "../../../src/index.ts";
import { PostgresSaver } from "../../../src/postgres.ts";
import { Random } from "../../bench/random.ts";

const THREADS = ["a", "b", "c"];

type Values = { list: string[]; sum: string };

/** A value that tells whether it is what was put. */
function valuesFor(list: string[]): Values {
	return { list, sum: createHash("sha256").update(JSON.stringify(list)).digest("hex") };
}

/** Whether all that is stored is what was put: everything can be read, and is itself. */
export async function findDamage(saver: DeltaSaver): Promise<string[]> {
	const damage: string[] = [];
	for await (const { checkpoint, pendingWrites } of saver.list({ configurable: {} })) {
		const { list, sum } = checkpoint.channel_values as Values;
		if (valuesFor(list).sum !== sum) damage.push(`checkpoint ${checkpoint.id} has other values than were put`);
		for (const [, channel, value] of pendingWrites ?? [])
			if (channel === "value" && valuesFor((value as Values).list).sum !== (value as Values).sum)
				damage.push(`a write of checkpoint ${checkpoint.id} is another than was put`);
	}
	if ((await saver.stats()).channels.some(({ channel }) => channel === "")) damage.push("blobs that nothing names");
	return damage;
}

/** Puts, forks, copies, prunes and deletes in threads that others use in the same way. */
class Racer {
	readonly #saver: PostgresSaver;
	readonly #random: Random;
	readonly #name: string;
	#count = 0;

	constructor(saver: PostgresSaver, seed: number) {
		this.#saver = saver;
		this.#random = new Random(seed);
		this.#name = `racer ${seed}`;
	}

	async step(): Promise<void> {
		const threadId = this.#random.pick(THREADS);
		const what = this.#random.below(20);
		if (what < 10) await this.#put(threadId, await this.#head(threadId));
		else if (what < 13) await this.#put(threadId, await this.#any(threadId));
		else if (what < 16) await this.#write(threadId);
		else if (what < 17) await this.#copy(threadId);
		else if (what < 19) await this.#saver.prune([threadId], { keepLast: 1 + this.#random.below(6) });
		else await this.#saver.deleteForRuns([`${this.#name} ${this.#random.below(4)}`]);
	}

	#head(threadId: string): Promise<CheckpointTuple | undefined> {
		return this.#saver.getTuple({ configurable: { thread_id: threadId } });
	}

	async #any(threadId: string): Promise<CheckpointTuple | undefined> {
		const tuples: CheckpointTuple[] = [];
		for await (const tuple of this.#saver.list({ configurable: { thread_id: threadId } }, { limit: 10 }))
			tuples.push(tuple);
		return tuples.length === 0 ? undefined : this.#random.pick(tuples);
	}

	async #put(threadId: string, parent: CheckpointTuple | undefined): Promise<void> {
		const before = (parent?.checkpoint.channel_values as Values | undefined)?.list ?? [];
		const list = [...before.slice(-30), `${this.#name} ${this.#count++} ${this.#random.hex(200)}`];
		const versions = { list: this.#count, sum: this.#count };
		const checkpoint = {
			v: 4,
			id: uuid6(this.#count),
			ts: "",
			channel_values: valuesFor(list),
			channel_versions: versions,
			versions_seen: {},
		};
		const config = parent?.config ?? { configurable: { thread_id: threadId, checkpoint_ns: "" } };
		const runId = `${this.#name} ${this.#random.below(4)}`;
		const metadata = { source: "loop" as const, step: this.#count, parents: {}, run_id: runId };
		await this.#saver.put(config, checkpoint, metadata, versions);
	}

	async #write(threadId: string): Promise<void> {
		const parent = await this.#any(threadId);
		if (parent === undefined) return;
		const { list } = parent.checkpoint.channel_values as Values;
		await this.#saver.putWrites(parent.config, [["value", valuesFor(list.slice(1))]], `task ${this.#random.below(3)}`);
	}

	async #copy(threadId: string): Promise<void> {
		const target = `${threadId} of ${this.#name}`;
		await this.#saver.deleteThread(target);
		await this.#saver.copyThread(threadId, target, { latestOnly: this.#random.below(2) === 0 });
	}
}

if (process.argv[1] === import.meta.filename) {
	const [url = "", schema = "", seed = "1", steps = "100"] = process.argv.slice(2);
	const saver = PostgresSaver.fromConnString(url, { schema });
	const racer = new Racer(saver, Number(seed));
	for (let step = 0; step < Number(steps); step++) await racer.step();
	await saver.close();
	console.log("done");
}

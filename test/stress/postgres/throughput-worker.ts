import type { BaseMessage } from "@langchain/core/messages";
import { DirectThread, oneChannelStep } from "../../bench/direct-thread.ts";
import { openPostgres } from "../../bench/postgres.ts";
import { writeMessages } from "../../bench/samples.ts";
import type { Saver, Stage } from "../../bench/workload.ts";

/** What a worker is told. */
export interface LoadJob {
	readonly stage: Stage;
	readonly index: number;
	/** Milliseconds. */
	readonly warmUp: number;
	readonly duration: number;
}

/** Conversations that one server has under way at a time. */
const CONVERSATIONS = 4;
/** Messages after which a new conversation takes the place of one. */
const LONGEST = 200;
/** Checkpoints of a turn: the question, the answer, the end. */
const STEPS_PER_TURN = 3;

/** Has one conversation after the other, turn by turn, and notes how long each step took the saver. */
async function converse(saver: Saver, name: string, messages: readonly BaseMessage[], note: (ms: number) => void) {
	for (let n = 0; ; n++) {
		const thread = new DirectThread(saver, `${name} ${n}`, n);
		for (let length = 1; length < LONGEST; ) {
			await saver.getTuple({ configurable: { thread_id: thread.threadId } });
			for (let step = 0; step < STEPS_PER_TURN; step++, length++)
				note(await thread.step(oneChannelStep("messages", messages.slice(0, length), [messages[length]])));
		}
	}
}

const { stage, index, warmUp, duration } = JSON.parse(process.argv[2] as string) as LoadJob;
const { saver } = await openPostgres(stage);
const messages = writeMessages(LONGEST + STEPS_PER_TURN + 1);
const times: number[] = [];
let isMeasured = false;
for (let n = 0; n < CONVERSATIONS; n++)
	converse(saver, `worker ${index}, conversation ${n},`, messages, (ms) => void (isMeasured && times.push(ms))).catch(
		(error) => {
			console.error(error);
			process.exit(1);
		},
	);
setTimeout(() => {
	isMeasured = true;
	setTimeout(() => {
		isMeasured = false;
		process.send?.(times, () => process.exit(0));
	}, duration);
}, warmUp);

import type { RunnableConfig } from "@langchain/core/runnables";
import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { deltaDraft, deltaWrite, putDeltaChain } from "../../src/contract/delta-fixtures.ts";
import { checkpointId } from "../../src/contract/scene.ts";
import { Thread } from "../../src/contract/thread.ts";
import type { SqliteSaver } from "../../src/sqlite.ts";
import { Random } from "../bench/random.ts";

/** What a fixture holds, and so what can be asked of it. */
export interface Contents {
	readonly threads: readonly string[];
	/** Threads whose channel `log` is a delta channel. */
	readonly deltas: readonly string[];
}

const SMALL_THREADS = 12;
/** So long that the rows of threads take more than one page, with another above them. */
const LONG_ID = 300;

/**
 * Fills a database with something of every kind: long and short threads, forks, namespaces, copies, delta channels with
 * and without their ancestors, values in rows and in blobs, writes with and without a checkpoint, and free pages. The
 * same for every call, but for the time.
 */
export async function fill(saver: SqliteSaver): Promise<Contents> {
	const random = new Random(1);
	let lastId = 0;
	const nextId = () => checkpointId(++lastId);
	const thread = (threadId: string, ns = "") => new Thread(saver, threadId, ns, nextId);
	const text = (length: number) => random.hex(length);

	await fillAndDelete(thread("deleted"), text);
	const chat = thread("chat");
	const messages: unknown[] = [];
	let parent: string | undefined;
	for (let n = 0; n < 9; n++) {
		messages.push({ id: random.uuid(), role: n % 2 ? "ai" : "human", content: text(600) });
		const values = { messages: [...messages], topic: "flips", count: n, note: text(90) };
		const versions = { messages: n + 1, topic: 1, count: n + 1, note: n + 1 };
		const id = await chat.put({ parent, values, versions, metadata: { run_id: `run ${n >> 2}` } });
		await chat.write(
			id,
			[
				["messages", [messages.at(-1)]],
				["count", n + 1],
			],
			random.uuid(),
		);
		if (n % 4 === 0) {
			await chat.write(id, [["messages", text(700)]], random.uuid());
			const inner = chat.within(`tool:${random.uuid()}`);
			const child = await inner.put({ values: { input: text(100) }, metadata: { parents: { "": id } } });
			await inner.put({
				parent: child,
				values: { input: text(100), output: text(20) },
				metadata: { parents: { "": id } },
			});
		}
		parent = id;
	}
	await chat.write(parent as string, [["__interrupt__", { id: "i", value: text(40) }]]);
	await chat.write(nextId(), [["messages", text(30)]]);

	const forks = thread("forks");
	const trunk = await forks.chain(4, (n) => ({ values: { n, text: text(2300) } }));
	for (const [n, from] of trunk.slice(1, 3).entries()) {
		let at = from;
		for (let step = 0; step < 2; step++) at = await forks.put({ parent: at, values: { n, step, text: text(150) } });
	}

	const log = thread("log");
	const ids = await putDeltaChain(log, 9, [0, 4]);
	for (const n of [3, 6]) {
		const fork = await log.put({ parent: ids[n] as string, ...deltaDraft(n + 1) });
		await log.write(fork, [["log", `fork ${n}`]], `fork ${n}`);
		await log.put({ parent: fork, ...deltaDraft(n + 2) });
	}
	await saver.copyThread("chat", "chat-copy");
	await saver.copyThread("log", "log-pruned");
	await saver.prune(["log-pruned"], { keepLast: 4 });
	await saver.copyThread("log", "log-copy");

	const small = Array.from({ length: SMALL_THREADS }, (_, n) => `customer-${n}-${text(LONG_ID)}`);
	for (const threadId of small) {
		const first = await thread(threadId).put({ values: { greeting: text(30) } });
		await thread(threadId).put({ parent: first, values: { greeting: text(30), answer: text(120) } });
		await thread(threadId).write(first, [["answer", deltaWrite(1)]]);
	}
	const big = thread("big");
	await big.put({ values: { big: text(15_000), other: text(6000) } });

	return {
		threads: ["chat", "chat-copy", "forks", "log", "log-pruned", "log-copy", "big", "later", ...small],
		deltas: ["log", "log-pruned", "log-copy"],
	};
}

/** Adds a little to a database that was filled: what its log then has. */
export async function append(saver: SqliteSaver): Promise<void> {
	let lastId = 1_000_000;
	const thread = (threadId: string) => new Thread(saver, threadId, "", () => checkpointId(++lastId));
	const random = new Random(2);
	for (const threadId of ["chat", "forks", "later"]) {
		const head = await saver.getTuple({ configurable: { thread_id: threadId } });
		const values = { messages: [random.hex(300)], note: random.hex(100) };
		const parent = head?.checkpoint.id;
		const id = await thread(threadId).put({ parent, values, versions: { messages: 100, note: 100 } });
		await thread(threadId).write(id, [["note", random.hex(50)]], random.uuid());
	}
}

async function fillAndDelete(thread: Thread, text: (length: number) => string): Promise<void> {
	await thread.chain(12, (n) => ({ values: { n, text: text(2500) } }));
	await thread.saver.deleteThread(thread.threadId);
}

/** One question to a saver, the thread that it is about, and what the answer is a list of. */
export interface Question {
	readonly name: string;
	readonly threadId: string | undefined;
	readonly kind: "tuples" | "writes" | "threads";
	ask(saver: SqliteSaver): Promise<unknown[]>;
}

/** Everything that can be asked, as LangGraph and people ask it. */
export async function questionsFor(saver: SqliteSaver, { threads, deltas }: Contents): Promise<Question[]> {
	const questions: Question[] = [];
	const add = (threadId: string | undefined, kind: Question["kind"], name: string, ask: Question["ask"]) =>
		questions.push({ name: `${threadId ?? ""} ${name}`, threadId, kind, ask });
	const getTuple = async (saver: SqliteSaver, config: RunnableConfig) => [await saver.getTuple(config)].filter(Boolean);
	for (const threadId of threads) {
		const at = (ns?: string, id?: string) => ({
			configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id },
		});
		const tuples = await readAll(saver.list(at()));
		add(threadId, "tuples", "getTuple", (saver) => getTuple(saver, at()));
		add(threadId, "tuples", "list", (saver) => readAll(saver.list(at())));
		add(threadId, "tuples", "list of the root", (saver) => readAll(saver.list(at(""))));
		add(threadId, "tuples", "list of two", (saver) => readAll(saver.list(at(""), { limit: 2 })));
		add(threadId, "tuples", "list by metadata", (saver) => readAll(saver.list(at(""), { filter: { source: "loop" } })));
		add(threadId, "tuples", "a missing checkpoint", (saver) => getTuple(saver, at("", checkpointId(9_999_999))));
		const middle = tuples[tuples.length >> 1]?.checkpoint.id as string;
		const before = at("", middle);
		add(threadId, "tuples", "list before", (saver) => readAll(saver.list(at(""), { limit: 3, before })));
		// Of a copy the newest will do.
		for (const { config } of threadId.endsWith("-copy") ? tuples.slice(0, 2) : tuples) {
			const { checkpoint_ns: ns, checkpoint_id: id } = config.configurable ?? {};
			add(threadId, "tuples", `getTuple of ${ns} ${id}`, (saver) => getTuple(saver, at(ns, id)));
			if (ns !== "") add(threadId, "tuples", `getTuple of ${ns}`, (saver) => getTuple(saver, at(ns)));
			if (deltas.includes(threadId))
				add(threadId, "writes", `history of ${id}`, async (saver) => {
					const { log } = await saver.getDeltaChannelHistory({ config: at("", id), channels: ["log"] });
					return [log?.seed ?? "no seed", ...(log?.writes ?? [])];
				});
		}
	}
	add(undefined, "threads", "listThreads", listThreads);
	add("missing", "tuples", "getTuple", (saver) => getTuple(saver, { configurable: { thread_id: "missing" } }));
	return questions;
}

/** Without their times, and in another order than theirs: nothing tells that one is damaged. */
async function listThreads(saver: SqliteSaver): Promise<unknown[]> {
	const { threads } = await saver.listThreads({ limit: 1000 });
	const counted = threads.map(({ threadId, checkpoints, head }) => ({ threadId, checkpoints, head }));
	return counted.sort((a, b) => (a.threadId < b.threadId ? -1 : 1));
}

async function readAll(tuples: AsyncIterable<CheckpointTuple>): Promise<CheckpointTuple[]> {
	const all: CheckpointTuple[] = [];
	for await (const tuple of tuples) all.push(tuple);
	return all;
}

import type { Checkpoint } from "@langchain/langgraph-checkpoint";
import type { SqliteSaver } from "../../src/sqlite.ts";
import { Random } from "../bench/random.ts";
import { Model, type ModelCheckpoint } from "../support/model.ts";

const NAMESPACES = ["", "", "", "tool:1"];
const MOST_MESSAGES = 30;
const TEXT = "a message with enough words to be worth a patch of its own, ";

/** How often each kind of operation comes. */
const WEIGHTS = {
	put: 8,
	fork: 2,
	burst: 2,
	again: 1,
	adopt: 1,
	writes: 6,
	copy: 2,
	prune: 2,
	runs: 1,
	delete: 1,
	rotate: 1,
	compact: 1,
	backup: 1,
} as const;

export type Kind = keyof typeof WEIGHTS;
export const KINDS = Object.keys(WEIGHTS) as Kind[];
const LOTS = KINDS.flatMap((kind) => Array<Kind>(WEIGHTS[kind]).fill(kind));

/** What the process that lives through a story is, besides its saver. */
export interface Teller {
	saver: SqliteSaver;
	/** Goes on with another current key. */
	changeKey(): Promise<void>;
	readonly backupPath: string;
}

/** One thing that happens: to a database, and to the model of it. */
export interface Happening {
	readonly kind: Kind;
	run(teller: Teller): Promise<unknown>;
	apply(model: Model): void;
}

interface Put {
	readonly threadId: string;
	readonly newVersions: Record<string, number>;
	readonly checkpoint: ModelCheckpoint;
}

/** What happens one after the other, the same for the same seed: to whoever does it, and to whoever checks it. */
export class Story {
	readonly model = new Model();
	readonly threads: readonly string[];
	readonly #copies: readonly string[];
	readonly #runs: readonly string[];
	readonly #random: Random;
	#clock = 0;
	readonly #orphans: { threadId: string; id: string }[] = [];

	/** @param prefix of all threads and runs, for several stories in one database */
	constructor(seed: number, prefix = "") {
		this.threads = ["a", "ab", "c"].map((name) => prefix + name);
		this.#copies = ["copy 1", "copy 2"].map((name) => prefix + name);
		this.#runs = ["run 1", "run 2", "run 3", "run 4"].map((name) => prefix + name);
		this.#random = new Random(seed);
	}

	/** What comes next, given that everything before was applied to the model. */
	next(): Happening {
		const kind = this.#random.pick(LOTS);
		this.#clock++;
		return { kind, ...this.#make(kind) };
	}

	#make(kind: Kind): Omit<Happening, "kind"> {
		switch (kind) {
			case "put":
				return store([this.#put(this.#random.pick(this.threads))]);
			case "fork":
				return store([this.#put(this.#random.pick(this.threads), true)]);
			case "burst":
				return store(this.threads.map((threadId) => this.#put(threadId)));
			case "again":
				return this.#again();
			case "adopt":
				return this.#adopt();
			case "writes":
				return this.#writes();
			case "rotate":
				return { run: (teller) => this.#rotate(teller), apply: () => {} };
			case "compact":
				return { run: ({ saver }) => saver.compact(), apply: () => {} };
			case "backup":
				return { run: ({ saver, backupPath }) => saver.backup(backupPath), apply: () => {} };
			default:
				return this.#maintain(kind);
		}
	}

	async #rotate(teller: Teller): Promise<void> {
		await teller.changeKey();
		await teller.saver.rotateKeys();
	}

	#maintain(kind: "copy" | "prune" | "runs" | "delete"): Omit<Happening, "kind"> {
		const random = this.#random;
		const known = [...this.model.threads.keys()];
		const threadId = known.length === 0 ? (this.threads[0] as string) : random.pick(known);
		const target = this.#copies.find((copy) => !this.model.threads.has(copy));
		const keepLast = 1 + random.below(6);
		const run = random.pick(this.#runs);
		// Whether a copy of nothing but writes was made would not show, and it can't be made twice.
		if (kind === "copy" && target !== undefined && known.includes(threadId) && this.model.list(threadId).length > 0)
			return {
				run: ({ saver }) => saver.copyThread(threadId, target),
				apply: (model) => model.copyThread(threadId, target),
			};
		if (kind === "runs")
			return { run: ({ saver }) => saver.deleteForRuns([run]), apply: (model) => model.deleteForRuns([run]) };
		// A copy makes way for the next one.
		if (kind === "delete" || kind === "copy")
			return { run: ({ saver }) => saver.deleteThread(threadId), apply: (model) => model.deleteThread(threadId) };
		return {
			run: ({ saver }) => saver.prune([threadId], { keepLast }),
			apply: (model) => model.prune(threadId, keepLast),
		};
	}

	#put(threadId: string, isFork = false): Put {
		const random = this.#random;
		const ns = random.pick(NAMESPACES);
		const known = this.model.list(threadId, ns);
		const parent = known.length === 0 ? undefined : isFork ? random.pick(known) : known[0];
		return this.#child(threadId, ns, parent, this.#nextId());
	}

	#child(threadId: string, ns: string, parent: ModelCheckpoint | undefined, id: string): Put {
		const n = this.#clock;
		const messages = [...((parent?.values.messages as string[] | undefined) ?? []), `${n} ${TEXT.repeat(n % 4)}`];
		const values: Record<string, unknown> = { messages: messages.slice(-MOST_MESSAGES), count: n };
		if (n % 3 === 0) values.note = `${n} ${TEXT.repeat(40)}`;
		else if (parent?.values.note !== undefined) values.note = parent.values.note;
		const newVersions: Record<string, number> = { messages: n, count: n };
		if (n % 3 === 0) newVersions.note = n;
		const runId = this.#random.pick(this.#runs);
		const versions = { ...parent?.versions, ...newVersions };
		const step = (parent?.metadata.step ?? -2) + 1;
		const metadata = { source: "loop", step, parents: {} } as ModelCheckpoint["metadata"];
		return { threadId, newVersions, checkpoint: { ns, id, parentId: parent?.id, runId, values, versions, metadata } };
	}

	/** A checkpoint is put once more, with other values. */
	#again(): Omit<Happening, "kind"> {
		const threadId = this.#random.pick(this.threads);
		const [known] = this.model.list(threadId, "");
		if (known === undefined) return store([this.#put(threadId)]);
		const { newVersions, checkpoint } = this.#child(threadId, "", known, known.id);
		return store([{ threadId, newVersions, checkpoint: { ...checkpoint, parentId: known.id } }]);
	}

	/** The checkpoint of writes that were there before it. */
	#adopt(): Omit<Happening, "kind"> {
		const orphan = this.#orphans.shift();
		if (orphan === undefined) return store([this.#put(this.#random.pick(this.threads))]);
		const [parent] = this.model.list(orphan.threadId, "");
		return store([this.#child(orphan.threadId, "", parent, orphan.id)]);
	}

	#writes(): Omit<Happening, "kind"> {
		const random = this.#random;
		const threadId = random.pick(this.threads);
		const ns = random.pick(NAMESPACES);
		const known = this.model.list(threadId, ns);
		const isOrphan = known.length === 0 || random.below(8) === 0;
		const id = isOrphan ? this.#nextId() : random.pick(known).id;
		if (isOrphan && ns === "") this.#orphans.push({ threadId, id });
		const runId = random.pick(this.#runs);
		const isSpecial = random.below(4) === 0;
		const text = TEXT.repeat(random.below(12));
		const writes: [string, unknown][] = isSpecial
			? [["__interrupt__", [{ id: "i", value: `${this.#clock} ${text}` }]]]
			: [
					["messages", `${this.#clock} ${text}`],
					["count", this.#clock],
				];
		const taskId = isSpecial ? "task" : `task ${this.#clock}`;
		const taskPath = this.#clock % 3 === 0 ? undefined : `~__pregel_push, ${9 - (this.#clock % 10)}`;
		const config = { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: id, run_id: runId } };
		return {
			run: ({ saver }) => saver.putWrites(config, writes, taskId, taskPath),
			apply: (model) => model.putWrites(threadId, { ns, id, taskId, taskPath, runId }, writes),
		};
	}

	#nextId(): string {
		return `1f0-${String(this.#clock).padStart(8, "0")}-${this.#random.hex(4)}`;
	}
}

function store(puts: readonly Put[]): Omit<Happening, "kind"> {
	return {
		run: ({ saver }) => Promise.all(puts.map((put) => putInto(saver, put))),
		apply: (model) => {
			for (const { threadId, checkpoint } of puts) model.put(threadId, checkpoint);
		},
	};
}

function putInto(saver: SqliteSaver, { threadId, newVersions, checkpoint }: Put): Promise<unknown> {
	const { ns, id, parentId, runId, values, versions, metadata } = checkpoint;
	const place = { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: parentId, run_id: runId };
	const given: Checkpoint = {
		v: 4,
		id,
		ts: "2025-01-01T00:00:00.000Z",
		channel_values: values,
		channel_versions: versions,
		versions_seen: {},
	};
	return saver.put({ configurable: place }, given, metadata, newVersions);
}

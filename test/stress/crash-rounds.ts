import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { SqliteSaver } from "../../src/sqlite.ts";
import { Random } from "../bench/random.ts";
import { bundle } from "../support/bundle.ts";
import type { Model } from "../support/model.ts";
import { inTemporaryFolder } from "../support/run-node.ts";
import { describeThread, difference, readThread } from "./compare.ts";
import { type CrashOrders, KEYS } from "./crash-orders.ts";
import { type Happening, KINDS, type Kind, Story } from "./story.ts";

/** Kills on one file, before a new one is begun: files stay small, and checks quick. */
const KILLS_PER_FILE = 20;
/** Milliseconds after which a child is killed that has no fault placed. */
const LONGEST_LIFE = 60;

export interface CrashReport {
	readonly kills: { random: number; fault: number };
	/** Kills at faults by kind of operation, and the last statement that was reached in it. */
	readonly faults: Partial<Record<Kind, { kills: number; statements: number }>>;
	/** Operations that were acknowledged, by kind. */
	readonly acknowledged: Partial<Record<Kind, number>>;
	/** Operations that were not acknowledged when the process died, but had been done. */
	doneUnsaid: number;
	/** Everything that was not as it should be. */
	readonly problems: string[];
}

export interface CrashOptions {
	readonly kills: number;
	readonly seed: number;
	readonly lanes: number;
	onProgress?(report: CrashReport): void;
}

/** Kills processes in the middle of a story, and checks after each kill that all is there that they had acknowledged. */
export async function crash({ kills, seed, lanes, onProgress }: CrashOptions): Promise<CrashReport> {
	const report: CrashReport = {
		kills: { random: 0, fault: 0 },
		faults: {},
		acknowledged: {},
		doneUnsaid: 0,
		problems: [],
	};
	const plan = new FaultPlan();
	await using program = await bundle("test/stress/crash-child.ts");
	let file = 0;
	const total = () => report.kills.random + report.kills.fault;
	const lane = async () => {
		while (total() < kills && report.problems.length === 0) {
			const n = file++;
			await inTemporaryFolder(async (folder) => {
				const life = new FileLife(program.path, join(folder, "crash.db"), seed * 1_000_003 + n, plan, report);
				for (let kill = 0; kill < KILLS_PER_FILE && total() < kills; kill++) {
					await life.round();
					onProgress?.(report);
				}
				await life.finish();
			});
		}
	};
	await Promise.all(Array.from({ length: lanes }, lane));
	return report;
}

/** Of a process that is not killed before: so many that every kind of them comes. */
const MOST_OPERATIONS = 1000;

/** Goes through all kinds of operations, and in each through all statements, before and after. */
class FaultPlan {
	readonly #next = new Map<Kind, { statement: number; isAfter: boolean }>();
	#kind = 0;

	take(): NonNullable<CrashOrders["fault"]> {
		const kind = KINDS[this.#kind++ % KINDS.length] as Kind;
		const { statement, isAfter } = this.#next.get(kind) ?? { statement: 1, isAfter: false };
		this.#next.set(kind, isAfter ? { statement: statement + 1, isAfter: false } : { statement, isAfter: true });
		return { kind, statement, isAfter };
	}

	/** An operation had fewer statements: from the beginning, then. */
	restart(kind: Kind): void {
		this.#next.delete(kind);
	}
}

/** One file, through many processes. */
class FileLife {
	readonly #program: string;
	readonly #path: string;
	readonly #seed: number;
	readonly #random: Random;
	readonly #plan: FaultPlan;
	readonly #report: CrashReport;
	readonly #story: Story;
	#done = 0;
	#fault: CrashOrders["fault"];
	/** What had begun when the last process died. */
	#open: Happening | undefined;

	constructor(program: string, path: string, seed: number, plan: FaultPlan, report: CrashReport) {
		this.#program = program;
		this.#path = path;
		this.#seed = seed;
		this.#random = new Random(seed ^ 0x5bd1e995);
		this.#plan = plan;
		this.#report = report;
		this.#story = new Story(seed);
	}

	async round(): Promise<void> {
		this.#fault = this.#random.below(2) === 0 ? this.#plan.take() : undefined;
		const acknowledged = await this.#live(this.#fault);
		for (let n = 0; n < acknowledged; n++) {
			const { kind, apply } = this.#take();
			apply(this.#story.model);
			this.#done++;
			this.#report.acknowledged[kind] = (this.#report.acknowledged[kind] ?? 0) + 1;
		}
		await this.#check();
	}

	/** Runs a process until it is killed. Returns how much it has acknowledged. */
	async #live(fault: CrashOrders["fault"]): Promise<number> {
		const orders: CrashOrders = {
			path: this.#path,
			seed: this.#seed,
			done: this.#done,
			until: this.#done + MOST_OPERATIONS,
			fault,
		};
		const child = spawn(process.execPath, [this.#program, JSON.stringify(orders)], {
			stdio: ["ignore", "pipe", "pipe"],
		});
		let said = 0;
		let death = "";
		let errors = "";
		child.stderr.on("data", (chunk) => {
			errors += chunk;
		});
		const life = this.#random.below(LONGEST_LIFE * 1000) / 1000;
		const lines = createInterface({ input: child.stdout });
		lines.on("line", (line) => {
			if (line === "ready" && fault === undefined) sleep(life).then(() => child.kill("SIGKILL"));
			else if (line.startsWith("done")) said++;
			else if (line.startsWith("dies")) death = line;
		});
		const [code, signal] = await Promise.all([
			new Promise<[number | null, string | null]>((resolve) =>
				child.on("close", (code, signal) => resolve([code, signal])),
			),
			new Promise((resolve) => lines.on("close", resolve)),
		]).then(([ended]) => ended);
		if (signal !== "SIGKILL") this.#problem(`the process ended with ${code ?? signal}: ${errors.slice(0, 2000)}`);
		this.#report.kills[fault === undefined ? "random" : "fault"]++;
		if (fault !== undefined) this.#noteFault(fault, Number(death.split(" ").at(-1)));
		return said;
	}

	#noteFault({ kind, statement }: NonNullable<CrashOrders["fault"]>, reached: number): void {
		const known = this.#report.faults[kind] ?? { kills: 0, statements: 0 };
		this.#report.faults[kind] = { kills: known.kills + 1, statements: Math.max(known.statements, reached) };
		if (reached < statement) this.#plan.restart(kind);
	}

	#take(): Happening {
		const happening = this.#open ?? this.#story.next();
		this.#open = undefined;
		return happening;
	}

	/** The file must verify, and each thread be as it was before the open operation, or as after it. */
	async #check(): Promise<void> {
		const { model } = this.#story;
		const happening = this.#take();
		const after = copyOf(model);
		happening.apply(after);
		const saver = new SqliteSaver(this.#path, { encryption: { keys: KEYS, current: "odd" } });
		const { damage } = await saver.verify();
		for (const { problem } of damage) this.#problem(`verify: ${problem}`, happening);
		let isDone = true;
		let isVisible = false;
		for (const threadId of new Set([...model.threads.keys(), ...after.threads.keys()])) {
			const found = await readThread(saver, threadId);
			const [old, young] = [describeThread(model, threadId), describeThread(after, threadId)];
			if (old !== young) isVisible = true;
			if (found !== young) isDone = false;
			if (found !== old && found !== young)
				this.#problem(`thread ${threadId} is neither as before nor as after: ${difference(found, old)}`, happening);
		}
		const listed = (await saver.listThreads({ limit: 100 })).threads.map(({ threadId }) => threadId);
		for (const threadId of listed)
			if (!model.threads.has(threadId) && !after.threads.has(threadId))
				this.#problem(`thread ${threadId} should not be there`, happening);
		await saver.close();
		if (existsSync(`${this.#path}.backup`)) await this.#checkBackup(happening);
		// What was done in part is done again, and what does not show: deleteForRuns goes from thread to thread, and writes
		// without a checkpoint can't be seen.
		if (isDone && isVisible && happening.kind !== "runs") {
			happening.apply(model);
			this.#done++;
			this.#report.doneUnsaid++;
		} else this.#open = happening;
	}

	async #checkBackup(happening: Happening): Promise<void> {
		const saver = new SqliteSaver(`${this.#path}.backup`, {
			encryption: { keys: KEYS, current: "odd" },
			readOnly: true,
		});
		const { damage } = await saver.verify();
		for (const { problem } of damage) this.#problem(`verify of the backup: ${problem}`, happening);
		await saver.close();
	}

	/** Nothing that a killed process has left behind survives a compaction. */
	async finish(): Promise<void> {
		const saver = new SqliteSaver(this.#path, { encryption: { keys: KEYS, current: "odd" } });
		await saver.compact();
		const { damage, unreachable } = await saver.verify();
		if (damage.length > 0 || unreachable !== 0)
			this.#problem(`after compaction: ${unreachable} unreachable, ${damage[0]?.problem}`);
		await saver.close();
	}

	#problem(what: string, happening?: Happening): void {
		const orders = JSON.stringify({ seed: this.#seed, done: this.#done, fault: this.#fault });
		this.#report.problems.push(`${orders}${happening ? `, in ${happening.kind}` : ""}: ${what}`);
	}
}

function copyOf(model: Model): Model {
	const copy = new (model.constructor as new () => Model)();
	for (const [threadId, thread] of model.threads) copy.threads.set(threadId, structuredClone(thread));
	return copy;
}

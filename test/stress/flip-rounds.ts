import {
	closeSync,
	copyFileSync,
	existsSync,
	openSync,
	readdirSync,
	readSync,
	rmSync,
	statSync,
	writeSync,
} from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { CheckpointError } from "../../src/index.ts";
import { SqliteSaver, type SqliteSaverOptions } from "../../src/sqlite.ts";
import type { Random } from "../bench/random.ts";
import { append, fill, type Question, questionsFor } from "./fixture.ts";

/** What a file answered, by the name of the question. */
type Answers = ReadonlyMap<string, string>;

type End = "" | "-wal";

const PAGE_SIZE = 4096;

interface PageRow {
	name: string;
	pageno: number;
}

/** A place in the database or its log, what is stored there, and what its byte is changed by. */
export interface Flip {
	readonly end: End;
	readonly offset: number;
	/** A table or an index; `log` and `unused` pages besides. */
	readonly where: string;
	readonly xor: number;
}

/** What came of a flip. */
export interface FlipResult {
	readonly flip: Flip;
	/** Whether any question was answered with an error. */
	readonly isReported: boolean;
	/** Whether a repair had anything to do, and the threads that it named. */
	readonly repaired: ReadonlySet<string> | undefined;
	/** What is not as it should be: silently wrong answers, and what is left after a repair. */
	readonly wrong: readonly string[];
	readonly unrepaired: readonly string[];
}

interface Comparison {
	/** Questions that were answered with an error, by its code. */
	readonly reported: ReadonlyMap<string, string>;
	/** Questions that were answered otherwise than before, without an error. */
	readonly wrong: readonly string[];
}

/** A database, closed or as a killed process left it, and what it answers while it is sound. */
export class FlipFixture {
	readonly name: string;
	readonly #folder: string;
	readonly #options: SqliteSaverOptions;
	readonly #sound: string;
	readonly path: string;
	readonly #questions: readonly Question[];
	readonly #answers: Answers;
	/** The pages of each table and index. */
	readonly #pages = new Map<string, number[]>();
	readonly #files: readonly { readonly end: End; readonly size: number }[];

	private constructor(
		folder: string,
		name: string,
		options: SqliteSaverOptions,
		questions: readonly Question[],
		answers: Answers,
	) {
		this.name = name;
		this.#folder = folder;
		this.#options = { ...options, busyTimeout: 10_000 };
		this.#sound = join(folder, `${name}-sound.db`);
		this.path = join(folder, `${name}.db`);
		this.#questions = questions;
		this.#answers = answers;
		const ends = (["", "-wal"] as const).filter((end) => existsSync(this.#sound + end));
		this.#files = ends.map((end) => ({ end, size: statSync(this.#sound + end).size }));
		const db = new Database(this.#sound, { readonly: true });
		for (const { name, pageno } of db.prepare("SELECT name, pageno FROM dbstat").all() as PageRow[])
			this.#pages.set(name, [...(this.#pages.get(name) ?? []), pageno]);
		db.close();
		for (const end of ["-wal", "-shm"])
			if (!this.#files.some((file) => file.end === end)) rmSync(this.#sound + end, { force: true });
	}

	/** @param withLog leaves what was committed last in the log */
	static async make(
		folder: string,
		name: string,
		{ withLog = false, ...options }: SqliteSaverOptions & { withLog?: boolean } = {},
	): Promise<FlipFixture> {
		const path = join(folder, `${name}-made.db`);
		const { contents, saver } = await atSameTime(async () => {
			const first = new SqliteSaver(path, options);
			const contents = await fill(first);
			await first.close();
			const saver = new SqliteSaver(path, options);
			await append(saver);
			return { contents, saver };
		});
		const questions = await questionsFor(saver, contents);
		const answers = new Map<string, string>();
		for (const { name, ask } of questions) answers.set(name, print(await ask(saver)));
		if (!withLog) await saver.close();
		for (const end of withLog ? ["", "-wal"] : [""]) copyFileSync(path + end, join(folder, `${name}-sound.db${end}`));
		if (withLog) await saver.close();
		return new FlipFixture(folder, name, options, questions, answers);
	}

	/** Half of the flips are anywhere, half in a table or index, each as often as the others. */
	choose(random: Random): Flip {
		const file = random.pick(this.#files);
		const xor = 1 + random.below(255);
		const anywhere = random.below(file.size);
		if (file.end === "-wal") return { end: file.end, offset: anywhere, where: "log", xor };
		const pages = random.pick([...this.#pages.values()]);
		const offset = random.below(2) === 0 ? anywhere : (random.pick(pages) - 1) * PAGE_SIZE + random.below(PAGE_SIZE);
		const page = Math.floor(offset / PAGE_SIZE) + 1;
		const [where = "unused"] = [...this.#pages].find(([, pages]) => pages.includes(page)) ?? [];
		return { end: file.end, offset, where, xor };
	}

	/** Changes one byte of the sound file, reads everything, and repairs what can't be read. */
	async try(flip: Flip): Promise<FlipResult> {
		this.#apply(flip);
		const { reported, wrong } = await this.#compare();
		const isReported = reported.size > 0;
		// What was read has not changed the file, but for a log that was taken over into it.
		if (flip.end === "-wal") this.#apply(flip);
		if (!isReported && !(await this.#findsDamage()))
			return { flip, isReported, repaired: undefined, wrong, unrepaired: [] };
		const { named, problems } = await this.#repair().catch((error: unknown) => ({
			named: new Set<string>(),
			problems: [`the repair failed: ${error}`],
		}));
		return { flip, isReported, repaired: named, wrong, unrepaired: problems };
	}

	/** Puts the sound files in place, with one byte changed. */
	#apply({ end, offset, xor }: Flip): void {
		this.#restore();
		const file = openSync(this.path + end, "r+");
		const byte = Buffer.alloc(1);
		readSync(file, byte, 0, 1, offset);
		writeSync(file, Uint8Array.of((byte[0] as number) ^ xor), 0, 1, offset);
		closeSync(file);
	}

	#restore(): void {
		for (const name of readdirSync(this.#folder))
			if (name.startsWith(`${this.name}.db`)) rmSync(join(this.#folder, name));
		for (const { end } of this.#files) copyFileSync(this.#sound + end, this.path + end);
	}

	/** Asks everything, with a new saver. */
	async #compare(): Promise<Comparison> {
		const saver = new SqliteSaver(this.path, this.#options);
		const reported = new Map<string, string>();
		const wrong: string[] = [];
		// What can't even be opened answers nothing.
		const refused = await saver.setup().catch((error: unknown) => error);
		for (const { name, ask } of this.#questions) {
			try {
				if (refused !== undefined) throw refused;
				if (print(await ask(saver)) !== this.#answers.get(name)) wrong.push(name);
			} catch (error) {
				if (error instanceof CheckpointError) reported.set(name, error.code);
				else wrong.push(`${name}: ${error}`);
			}
		}
		await saver.close();
		return { reported, wrong };
	}

	async #findsDamage(): Promise<boolean> {
		const saver = new SqliteSaver(this.path, this.#options);
		const damage = await saver.verify().then(
			(report) => report.damage.length > 0,
			(error) => error instanceof CheckpointError,
		);
		await saver.close();
		return damage;
	}

	/** Repairs the file: it must verify then, and answer as before for all threads that the report does not name. */
	async #repair(): Promise<{ named: ReadonlySet<string>; problems: readonly string[] }> {
		const saver = new SqliteSaver(this.path, this.#options);
		const report = await saver.repair();
		const { damage } = await saver.verify();
		await saver.close();
		const problems = damage.map(({ problem }) => `after the repair: ${problem}`);
		if (report.damage.length === 0) problems.push("the repair found nothing to do");
		const named = new Set<string>();
		for (const { threadId } of [...report.damage, ...report.removed]) if (threadId !== undefined) named.add(threadId);
		const { reported, wrong } = await this.#compare();
		for (const [name, code] of reported) problems.push(`${name} is answered with ${code} after the repair`);
		for (const name of wrong) {
			const { threadId } = this.#questions.find((question) => question.name === name) ?? {};
			// The list of threads has the times and counts of those that were changed.
			if (threadId === undefined ? named.size === 0 : !named.has(threadId))
				problems.push(`${name} is answered otherwise after the repair, which did not name its thread`);
		}
		return { named, problems };
	}
}

/** Times are stored, and so is what depends on them: with the same ones, a flip of the same number is the same flip. */
async function atSameTime<T>(work: () => Promise<T>): Promise<T> {
	const { now } = Date;
	let time = Date.UTC(2026, 0, 1);
	Date.now = () => time++;
	try {
		return await work();
	} finally {
		Date.now = now;
	}
}

/** Three databases: closed properly, left with a log, and encrypted. */
export async function makeFixtures(folder: string): Promise<FlipFixture[]> {
	return [
		await FlipFixture.make(folder, "closed"),
		await FlipFixture.make(folder, "with-log", { withLog: true }),
		await FlipFixture.make(folder, "encrypted", { encryption: { key: new Uint8Array(32).fill(7) } }),
	];
}

/** Everything that matters of an answer. */
function print(answer: unknown): string {
	return JSON.stringify(answer) ?? "undefined";
}

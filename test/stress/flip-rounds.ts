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

/** What a file answered, by the name of the question: each part as text. */
type Answers = ReadonlyMap<string, readonly string[]>;

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
	/** Whether an answer lacked something. */
	readonly isHidden: boolean;
	/** Whether a repair had anything to do, and the threads that it named. */
	readonly repaired: ReadonlySet<string> | undefined;
	/** Why a repair was refused, because SQLite could read nothing. */
	readonly refused: string | undefined;
	/** What is not as it should be: other values than were stored, what is hidden and not named, what a repair left. */
	readonly wrong: readonly string[];
	readonly unnamed: readonly string[];
	readonly unrepaired: readonly string[];
}

/** How a file answers, compared with how it should. */
interface Comparison {
	/** Questions that were answered with an error. */
	readonly reported: readonly string[];
	/** Questions whose answers have something that was never stored. */
	readonly wrong: readonly string[];
	/** Questions whose answers lack something, or have older rows instead. */
	readonly hidden: readonly Question[];
}

/** What a report says of damage. */
interface Report {
	readonly threads: ReadonlySet<string>;
	readonly text: string;
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
	/** Everything that is part of an answer, by itself without its pending writes. */
	readonly #parts: ReadonlyMap<string, string>;
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
		const parts = [...answers.values()].flat();
		const known = [...parts, JSON.stringify("no seed")];
		this.#parts = new Map(known.flatMap((part) => [identify(part), withoutParent(part)].map((key) => [key, part])));
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
		const answers = new Map<string, readonly string[]>();
		for (const question of questions) answers.set(question.name, await answer(question, saver));
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
		const { reported, wrong, hidden } = await this.#compare();
		const [isReported, isHidden] = [reported.length > 0, hidden.length > 0];
		// What was read has not changed the file, but for a log that was taken over into it.
		if (flip.end === "-wal") this.#apply(flip);
		const report = await this.#verify();
		const isLog = flip.end === "-wal";
		const unnamed = isLog ? [] : hidden.filter((question) => !isNamed(question, report)).map(({ name }) => name);
		const result = { flip, isReported, isHidden, repaired: undefined, refused: undefined, wrong, unnamed };
		if (!isReported && report === undefined) return { ...result, unrepaired: [] };
		try {
			const { named, problems } = await this.#repair(isLog);
			return { ...result, repaired: named, unrepaired: problems };
		} catch (error) {
			if (!(error instanceof CheckpointError) || !UNREADABLE.includes(error.code))
				return { ...result, unrepaired: [`the repair failed: ${error}`] };
			return { ...result, refused: error.code, unrepaired: [] };
		}
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

	/**
	 * Asks everything, with a new saver.
	 *
	 * @param relinked threads that have lost checkpoints, so that others may have other parents
	 */
	async #compare(relinked: ReadonlySet<unknown> = new Set()): Promise<Comparison> {
		const saver = new SqliteSaver(this.path, this.#options);
		const comparison = { reported: [] as string[], wrong: [] as string[], hidden: [] as Question[] };
		// What can't even be opened answers nothing.
		const refused = await saver.setup().catch((error: unknown) => error);
		for (const question of this.#questions) {
			const { name, kind } = question;
			try {
				if (refused !== undefined) throw refused;
				const found = await answer(question, saver);
				const expected = this.#answers.get(name) ?? [];
				if (JSON.stringify(found) === JSON.stringify(expected)) continue;
				const isKnown = found.every((part) => this.#isKnown(part, relinked.has(question.threadId)));
				if (kind === "threads" || isKnown) comparison.hidden.push(question);
				else comparison.wrong.push(name);
			} catch (error) {
				if (error instanceof CheckpointError) comparison.reported.push(name);
				else comparison.wrong.push(`${name}: ${error}`);
			}
		}
		await saver.close();
		return comparison;
	}

	/** Whether this was stored: a write, or a checkpoint with some of its writes. */
	#isKnown(part: string, isRelinked: boolean): boolean {
		const sound = this.#parts.get(identify(part)) ?? (isRelinked ? this.#parts.get(withoutParent(part)) : undefined);
		return sound !== undefined && pendingOf(part).every((write) => pendingOf(sound).includes(write));
	}

	/** What a verification finds; nothing if all is well. */
	async #verify(): Promise<Report | undefined> {
		const saver = new SqliteSaver(this.path, this.#options);
		const damage = await saver.verify().then(
			(report) => report.damage,
			(error: unknown) => {
				if (!(error instanceof CheckpointError)) throw error;
				return [{ problem: error.message, threadId: undefined }];
			},
		);
		await saver.close();
		return damage.length === 0 ? undefined : reportOf(damage);
	}

	/**
	 * Repairs the file: it must verify then, and answer as before for all threads that the report does not name.
	 *
	 * @param isLog whether the log was damaged, of which SQLite keeps what comes before
	 */
	async #repair(isLog: boolean): Promise<{ named: ReadonlySet<string>; problems: readonly string[] }> {
		const saver = new SqliteSaver(this.path, this.#options);
		const repaired = await saver.repair().finally(() => saver.close());
		const problems: string[] = [];
		if (repaired.damage.length === 0) problems.push("the repair found nothing to do");
		const left = await this.#verify();
		if (left !== undefined) problems.push(`after the repair: ${left.text}`);
		const report = reportOf([...repaired.damage, ...repaired.removed.map((row) => ({ ...row, problem: "" }))]);
		const { reported, wrong, hidden } = await this.#compare(report.threads);
		for (const name of reported) problems.push(`${name} is answered with an error after the repair`);
		for (const name of wrong) problems.push(`${name} is answered wrongly after the repair`);
		for (const question of isLog ? [] : hidden)
			if (!isNamed(question, report))
				problems.push(`${question.name} lacks something after the repair, which did not name its thread`);
		return { named: report.threads, problems };
	}
}

/** Codes of errors for a file of which SQLite can read nothing at all. */
const UNREADABLE = ["CORRUPT", "FOREIGN_DATABASE", "NEWER_FORMAT"];

function reportOf(damage: readonly { threadId?: string | undefined; problem: string }[]): Report {
	const threads = new Set(damage.flatMap(({ threadId }) => threadId ?? []));
	return { threads, text: damage.map(({ threadId, problem }) => `${threadId ?? ""} ${problem}`).join("; ") };
}

/**
 * Whether a report says that an answer may lack something. Of lists of threads anything that was found may be the reason.
 * Rows of writes and delta bases stand in one place only: if a page of them is damaged, it is the table that is named.
 */
function isNamed({ threadId }: Question, report: Report | undefined): boolean {
	if (report === undefined) return false;
	return threadId === undefined || report.threads.has(threadId) || /delta_(writes|bases)\b/.test(report.text);
}

async function answer({ ask }: Question, saver: SqliteSaver): Promise<string[]> {
	return (await ask(saver)).map((part) => JSON.stringify(part) ?? "undefined");
}

/** A part of an answer without its pending writes. */
function identify(part: string): string {
	const value = JSON.parse(part);
	return isTuple(value) ? JSON.stringify({ ...value, pendingWrites: undefined }) : part;
}

/** The same without its parent too. */
function withoutParent(part: string): string {
	const value = JSON.parse(part);
	return isTuple(value) ? JSON.stringify({ ...value, pendingWrites: undefined, parentConfig: "any" }) : part;
}

function pendingOf(part: string): string[] {
	const value = JSON.parse(part);
	return isTuple(value) ? (value.pendingWrites ?? []).map((write) => JSON.stringify(write)) : [];
}

function isTuple(value: unknown): value is { checkpoint: unknown; pendingWrites?: unknown[] } {
	return typeof value === "object" && value !== null && "checkpoint" in value;
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

import { writeSync } from "node:fs";
import { createRequire } from "node:module";
import { SqliteSaver } from "../../src/sqlite.ts";
import { type CrashOrders, KEYS } from "./crash-orders.ts";
import { Story, type Teller } from "./story.ts";

const orders = JSON.parse(process.argv[2] ?? "{}") as CrashOrders;
const { fault } = orders;
/** Statements since the happening began that is to be the last one. */
let statements: number | undefined;

/** One line for each thing that the parent may rely on. */
function say(line: string): void {
	writeSync(1, `${line}\n`);
}

function die(): never {
	say(`dies at statement ${statements}`);
	process.kill(process.pid, "SIGKILL");
	for (;;);
}

/** Counts every statement that SQLite is given, and dies before or after the chosen one. */
function placeFaults(): void {
	const Database = createRequire(import.meta.url)("better-sqlite3") as new (
		path: string,
	) => { prepare(sql: string): object };
	const database = new Database(":memory:");
	const statement = Object.getPrototypeOf(database.prepare("SELECT 1"));
	wrap(statement, ["run", "get", "all"]);
	wrap(Database.prototype, ["exec", "pragma"]);
}

function wrap(prototype: Record<string, (...args: unknown[]) => unknown>, methods: string[]): void {
	for (const method of methods) {
		const original = prototype[method] as (...args: unknown[]) => unknown;
		prototype[method] = function (this: unknown, ...args: unknown[]) {
			if (statements === undefined) return original.apply(this, args);
			const isChosen = ++statements === fault?.statement;
			if (isChosen && !fault?.isAfter) die();
			const result = original.apply(this, args);
			if (isChosen) die();
			return result;
		};
	}
}

if (fault !== undefined) placeFaults();
const story = new Story(orders.seed);
for (let n = 0; n < orders.done; n++) story.next().apply(story.model);

let current: keyof typeof KEYS = "odd";
const open = () => new SqliteSaver(orders.path, { encryption: { keys: KEYS, current }, cacheBytes: 100_000 });
const teller: Teller = {
	saver: open(),
	backupPath: `${orders.path}.backup`,
	async changeKey() {
		await this.saver.close();
		current = current === "odd" ? "even" : "odd";
		this.saver = open();
	},
};
await teller.saver.setup();
say("ready");
for (let n = orders.done; n < orders.until; n++) {
	const happening = story.next();
	const isLast = fault !== undefined && happening.kind === fault.kind;
	if (isLast) statements = 0;
	await happening.run(teller);
	if (isLast) die();
	happening.apply(story.model);
	say(`done ${n}`);
}
await teller.saver.close();

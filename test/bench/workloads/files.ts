import { DirectThread, oneChannelStep } from "../direct-thread.ts";
import { measureLimit } from "../limit.ts";
import { timeReads } from "../measure.ts";
import { Random } from "../random.ts";
import { writeText } from "../samples.ts";
import { measureOn } from "../savers.ts";
import { forEachInTurns } from "../turns.ts";
import { check, type Stage, type Workload } from "../workload.ts";

const LINE_CHARACTERS = 64;
const LINES = 64;

type Files = Readonly<Record<string, string>>;

interface Edit {
	readonly files: Files;
	/** The file that was edited, as a node returns it. */
	readonly update: Files;
}

function writeFiles(random: Random, count: number): Files {
	const line = () => writeText(random, LINE_CHARACTERS - 1);
	const write = () => Array.from({ length: LINES }, line).join("\n");
	return Object.fromEntries(Array.from({ length: count }, (_, i) => [`src/module-${i}.ts`, write()]));
}

/** Each state has one line of one file changed. */
function writeEdits({ quick }: Stage): Edit[] {
	const random = new Random(11);
	let files = writeFiles(random, quick ? 20 : 200);
	const edits: Edit[] = [{ files, update: files }];
	for (let i = 1; i < (quick ? 15 : 150); i++) {
		const path = random.pick(Object.keys(files));
		const lines = (files[path] as string).split("\n");
		lines[random.below(lines.length)] = writeText(random, 30 + random.below(LINE_CHARACTERS));
		const update = { [path]: lines.join("\n") };
		files = { ...files, ...update };
		edits.push({ files, update });
	}
	return edits;
}

/** What a coding agent keeps: a lot of text of which little changes. */
export const files: Workload = {
	name: "files",
	title: "200 files of 4 kB, one edited per step",
	warmUpMs: 500,
	backends: ["sqlite", "memory", "postgres"],
	measures: {
		bytes: { title: "bytes", target: { sqlite: 120 } },
		put: { title: "put + putWrites", target: { sqlite: 3, memory: 2 } },
		get: { title: "getTuple of the head" },
	},
	async run(stage) {
		const edits = writeEdits(stage);
		const thread = { configurable: { thread_id: "files" } };
		return measureOn(
			stage,
			async (saver) => {
				const direct = new DirectThread(saver, "files");
				let total = 0;
				await forEachInTurns(edits, async ({ files, update }) => {
					total += await direct.step(oneChannelStep("files", files, update));
				});
				return { put: total / edits.length };
			},
			async (saver) => {
				const found = (await saver.getTuple(thread))?.checkpoint.channel_values.files as Files;
				const expected = (edits.at(-1) as Edit).files;
				check(
					Object.keys(expected).every((path) => found[path] === expected[path]),
					"a file has other content",
				);
				return { get: await timeReads(() => saver.getTuple(thread)) };
			},
		);
	},
	async limit(stage) {
		const edits = writeEdits(stage);
		const news = edits.map(({ update }) => update);
		return measureLimit(stage, news, edits.at(-1)?.files);
	},
};

import { styleText } from "node:util";
import type { CheckpointTuple } from "@langchain/langgraph-checkpoint";

function paint(style: "bold" | "green" | "red", text: string): string {
	return process.stdout.isTTY && !process.env.NO_COLOR ? styleText(style, text) : text;
}
export const bold = (text: string) => paint("bold", text);
export const green = (text: string) => paint("green", text);
export const red = (text: string) => paint("red", text);

export function say(text: string): void {
	console.log(`  ${text}`);
}

/** Draws the checkpoints of a thread as a tree, oldest first, one line for each stretch without a fork or a mark. */
export function drawTree(tuples: CheckpointTuple[], marks: Map<string, string>): string[] {
	const children = new Map<string, CheckpointTuple[]>();
	for (const tuple of tuples.toReversed()) {
		const parent = tuple.parentConfig?.configurable?.checkpoint_id ?? "none";
		children.set(parent, [...(children.get(parent) ?? []), tuple]);
	}
	const childrenOf = (tuple: CheckpointTuple) => children.get(tuple.checkpoint.id) ?? [];

	function stretchFrom(tuple: CheckpointTuple): CheckpointTuple[] {
		const [next, fork] = childrenOf(tuple);
		const ends = next === undefined || fork !== undefined || marks.has(tuple.checkpoint.id);
		return ends ? [tuple] : [tuple, ...stretchFrom(next)];
	}

	function draw(start: CheckpointTuple, first: string, rest: string, asked: number): string[] {
		const stretch = stretchFrom(start);
		const end = stretch[stretch.length - 1] ?? start;
		const last = asked + stretch.filter(({ metadata }) => metadata?.source === "input").length;
		const questions = last > asked + 1 ? `questions ${asked + 1} to ${last}` : `question ${last}`;
		const mark = marks.get(end.checkpoint.id);
		const line = `${first}● ${questions}, ${stretch.length} checkpoints${mark ? `  ${mark}` : ""}`;

		const [original, ...forks] = childrenOf(end);
		const branches = forks.flatMap((fork) => draw(fork, `${rest}├─`, `${rest}│ `, last));
		return [line, ...branches, ...(original ? draw(original, rest, rest, last) : [])];
	}

	return (children.get("none") ?? []).flatMap((root) => draw(root, "", "", 0));
}

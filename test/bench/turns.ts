import { once } from "node:events";

/** Parts that a piece of work is done in: many enough that whatever else the machine does meanwhile falls on both sides. */
const PARTS = 10;

/** What a process tells the one that started it. */
export type Message = { readonly isPass: true } | { readonly measures: Record<string, number> };

let isTakingTurns = false;

/** From now on this process runs only while another one, which does the same on another saver, waits. */
export async function startTakingTurns(): Promise<void> {
	isTakingTurns = process.send !== undefined;
	await pass();
}

/** Lets the other one run until it passes in turn. Both must do so equally often. */
export async function pass(): Promise<void> {
	if (!isTakingTurns) return;
	const isBack = once(process, "message");
	process.send?.({ isPass: true } satisfies Message);
	await isBack;
}

/** Does something with each item, taking turns on the way. */
export async function forEachInTurns<T>(
	items: readonly T[],
	visit: (item: T, index: number) => Promise<void>,
	parts = PARTS,
): Promise<void> {
	for (let part = 0; part < parts; part++) {
		const [from, to] = [part, part + 1].map((end) => Math.round((items.length * end) / parts)) as [number, number];
		for (let i = from; i < to; i++) await visit(items[i] as T, i);
		await pass();
	}
}

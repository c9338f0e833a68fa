import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { collect } from "./thread.ts";

/** Whole values come again several times, and a list takes more than one page. */
const STEPS = 150;

/** Small numbers in a fixed, uneven order. */
function scatter(n: number): number {
	return Math.imul(n + 1, 2654435761) >>> 8;
}

const message = (n: number) => ({
	id: `m${n}`,
	role: n % 2 ? "ai" : "human",
	content: `message ${n} `.repeat(1 + (scatter(n) % 9)),
});

/** Each gives the state of a channel at a step. */
const HISTORIES: Record<string, (n: number) => unknown> = {
	"messages appended": (n) => Array.from({ length: n + 1 }, (_, at) => message(at)),
	"a window of the last 40 messages": (n) =>
		Array.from({ length: Math.min(n + 1, 40) }, (_, at) => message(Math.max(0, n - 39) + at)),
	"messages with the last one streamed": (n) => [
		...Array.from({ length: n >> 2 }, (_, at) => message(at)),
		{ id: "streamed", content: "token ".repeat(n % 4) },
	],
	"files edited one by one": (n) =>
		Object.fromEntries(
			Array.from({ length: 30 }, (_, file) => [`file ${file}`, `edit ${lastEdit(file, n)} `.repeat(20)]),
		),
	"a counter": (n) => n,
	"a string that grows and is cut": (n) => "lorem ipsum ".repeat(n % 50),
	"a nested plan": (n) => ({
		tasks: Array.from({ length: 10 }, (_, at) => ({
			at,
			done: at < n / 30,
			log: Array.from({ length: n % 7 }, () => at),
		})),
	}),
};

function lastEdit(file: number, n: number): number {
	let step = n;
	while (step > 0 && scatter(step) % 30 !== file) step--;
	return step;
}

/** Long threads: every checkpoint still reads what was put. */
export function historyRules(test: RuleTest): void {
	for (const [kind, stateAt] of Object.entries(HISTORIES)) {
		test(`CH-10: ${STEPS} steps of ${kind} read back exactly`, async (scene) => {
			const ids = await putHistory(scene, (n) => ({ it: stateAt(n) }));
			const reopened = scene.thread().through(await scene.reopen());
			for (const [n, id] of ids.entries()) assert.deepEqual((await reopened.values(id)).it, stateAt(n), `step ${n}`);
		});
	}

	test(`CH-10: ${STEPS} steps of all of these at once are listed exactly`, async (scene) => {
		const stateAt = (n: number) => Object.fromEntries(Object.entries(HISTORIES).map(([kind, at]) => [kind, at(n)]));
		await putHistory(scene, stateAt);
		const listed = await collect(scene.saver.list(scene.thread().config()));
		assert.equal(listed.length, STEPS);
		for (const [n, { checkpoint }] of listed.reverse().entries())
			assert.deepEqual(checkpoint.channel_values, stateAt(n), `step ${n}`);
	});

	test("CH-10: what is left of a long history after prune reads back exactly, and grows on", async (scene) => {
		const stateAt = HISTORIES["messages appended"] as (n: number) => unknown;
		const ids = await putHistory(scene, (n) => ({ it: stateAt(n) }));
		const thread = scene.thread();
		for (const keepLast of [100, 7, 1]) {
			await scene.saver.prune(["thread"], { keepLast });
			assert.deepEqual(await thread.ids(), ids.slice(-keepLast).reverse());
			for (let n = STEPS - keepLast; n < STEPS; n++) assert.deepEqual(await thread.values(ids[n]), { it: stateAt(n) });
		}
		const next = await thread.put({ parent: ids.at(-1), values: { it: stateAt(STEPS) } });
		assert.deepEqual(await thread.values(next), { it: stateAt(STEPS) });
	});

	test("CH-10: what is left of a long history after every other run was deleted reads back exactly", async ({
		saver,
		thread,
	}) => {
		const stateAt = HISTORIES["messages appended"] as (n: number) => unknown;
		const ids = await thread().chain(100, (n) => ({
			values: { it: stateAt(n) },
			metadata: { run_id: `run ${n % 3}` },
		}));
		await saver.deleteForRuns(["run 0", "run 1"]);
		const left = [...ids.entries()].filter(([n]) => n % 3 === 2);
		assert.deepEqual(await thread().ids(), left.map(([, id]) => id).reverse());
		for (const [n, id] of left) assert.deepEqual(await thread().values(id), { it: stateAt(n) });
	});

	test("CH-10: a copy of a long history reads back exactly when its source is gone", async (scene) => {
		const stateAt = HISTORIES["a window of the last 40 messages"] as (n: number) => unknown;
		const ids = await putHistory(scene, (n) => ({ it: stateAt(n) }));
		await scene.saver.copyThread("thread", "copy");
		await scene.saver.deleteThread("thread");
		for (const [n, id] of ids.entries()) assert.deepEqual(await scene.thread("copy").values(id), { it: stateAt(n) });
	});
}

async function putHistory(scene: Scene, stateAt: (n: number) => Record<string, unknown>): Promise<string[]> {
	return scene.thread().chain(STEPS, (n) => ({ values: stateAt(n) }));
}

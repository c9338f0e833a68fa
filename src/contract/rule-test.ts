import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { Scene } from "./scene.ts";
import type { SaverContractOptions, SaverSetup, Skip } from "./types.ts";

/** Gives a scene over empty storage, with a serializer of the test's own if one is passed. */
export type OpenScene = (serde?: SerializerProtocol) => Promise<Scene>;

/** Registers one test. The name starts with the rule it checks and a colon: `PUT-2: a checkpoint …`. */
export interface RuleTest {
	(name: string, body: (scene: Scene) => Promise<void>): void;
	/** For a test that opens its scenes itself. */
	opening(name: string, body: (open: OpenScene) => Promise<void>): void;
}

/** Registers the tests of one topic. */
export type Topic = (test: RuleTest) => void;

/** The registering half of {@link runSaverContract}: set-up, teardown and skips around each test. */
export function createRuleTest(options: SaverContractOptions, skips: SkipList): RuleTest {
	const opening: RuleTest["opening"] = (name, body) => {
		const run = () => runInScene(options.setup, body);
		const reason = skips.reasonFor(name);
		if (reason === undefined) options.test.it(name, run);
		else options.test.it.skip(`${name} (skipped: ${reason})`, run);
	};
	const test = (name: string, body: (scene: Scene) => Promise<void>) =>
		opening(name, async (open) => body(await open()));
	return Object.assign(test, { opening });
}

async function runInScene(setup: SaverContractOptions["setup"], body: (open: OpenScene) => Promise<void>) {
	const opened: { scene: Scene; teardown: SaverSetup["teardown"] }[] = [];
	const open: OpenScene = async (serde) => {
		const made = await setup(serde === undefined ? {} : { serde });
		const scene = new Scene(made.saver, made.reopen);
		opened.push({ scene, teardown: made.teardown });
		return scene;
	};
	try {
		await body(open);
	} finally {
		for (const { scene, teardown } of opened) {
			await scene.close();
			await teardown?.();
		}
	}
}

/** The skips of one run. Each must have a reason and must match a test, so that none outlives its cause. */
export class SkipList {
	readonly #skips: readonly Skip[];

	constructor(skips: readonly Skip[], testNames: readonly string[]) {
		for (const { rule, reason } of skips) {
			if (typeof reason !== "string" || reason.trim() === "")
				throw new TypeError(`The skip of ${JSON.stringify(rule)} needs a reason.`);
			if (!testNames.some((name) => matches(rule, name)))
				throw new TypeError(`The contract has no rule or test named ${JSON.stringify(rule)}.`);
		}
		this.#skips = skips;
	}

	reasonFor(testName: string): string | undefined {
		return this.#skips.find(({ rule }) => matches(rule, testName))?.reason;
	}
}

function matches(rule: string, testName: string): boolean {
	return rule === testName || testName.startsWith(`${rule}: `);
}

/** The names of all tests that these topics register. */
export function namesOf(topics: readonly Topic[]): string[] {
	const names: string[] = [];
	const note = (name: string) => void names.push(name);
	for (const register of topics) register(Object.assign(note, { opening: note }));
	return names;
}

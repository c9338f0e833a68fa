import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import fc from "fast-check";
import { runSaverContract, runStorageContract } from "../../../src/contract.ts";
import { PostgresSaver } from "../../../src/postgres.ts";
import { randomScenario } from "../../support/delta-random.ts";
import { differences } from "../../support/delta-world.ts";
import { histories, runHistory } from "../../support/histories.ts";
import { emptySchema, openStorage, type TestSchema } from "../../support/postgres.ts";
import { sealed } from "../../support/sealed-histories.ts";
import { shareOfTests } from "../../support/share.ts";

const test = { describe, it };

async function setupStorage() {
	const { pool, schema, leave } = await emptySchema();
	const open = () => openStorage(pool, schema);
	return { storage: open(), reopen: async () => open(), teardown: leave };
}

runStorageContract({ name: "PostgresStorage", test, setup: setupStorage });

runSaverContract({
	name: "PostgresSaver",
	test: shareOfTests(test, 2),
	setup: async ({ serde }) => {
		const { pool, schema, leave } = await emptySchema();
		const open = () => new PostgresSaver(pool, { schema, serde });
		return { saver: open(), reopen: async () => open(), teardown: leave };
	},
});

const leaving = new WeakMap<PostgresSaver, () => Promise<void>>();
const validated = {
	/** A name of our own, so that none of the suite's lists of tests to skip applies. */
	checkpointerName: "langgraph-checkpoint-delta postgres",
	createCheckpointer: async () => {
		const { pool, schema, leave } = await emptySchema();
		const saver = new PostgresSaver(pool, { schema });
		leaving.set(saver, leave);
		return saver;
	},
	destroyCheckpointer: async (saver: PostgresSaver) => {
		await saver.close();
		await leaving.get(saver)?.();
	},
};
validate(validated);
deltaChannelHistoryTests(validated);

const key = (n: number) => new Uint8Array(32).fill(n);

describe("any history on PostgreSQL", () => {
	const rotated = [
		undefined,
		{ key: key(1), migrate: true },
		{ keys: { default: key(1), k2: key(2) }, current: "k2", migrate: true },
	];
	it.each([
		["as it is", setupStorage, 40],
		["first plain, then encrypted, then with another key", sealed(setupStorage, rotated), 12],
	])("%s, reads as a naive full copy would, and leaves nothing behind", async (_, open, numRuns) => {
		await fc.assert(
			fc.asyncProperty(histories, (operations) => runHistory(operations, open)),
			{ numRuns, seed: 20261116 },
		);
	});
});

type HistoryQuery = Parameters<PostgresSaver["getDeltaChannelHistory"]>[0];

/** Has histories answered by a second saver too, which must notice what the first one changes, and by one that is new. */
class CheckedSaver extends PostgresSaver {
	readonly #other: PostgresSaver;
	readonly #openNew: () => PostgresSaver;

	constructor({ pool, schema }: TestSchema) {
		super(pool, { schema });
		this.#openNew = () => new PostgresSaver(pool, { schema });
		this.#other = this.#openNew();
	}

	override async getDeltaChannelHistory(query: HistoryQuery) {
		const answer = await super.getDeltaChannelHistory(query);
		const expected = await this.#openNew().getDeltaChannelHistory(query);
		expect(answer).toEqual(expected);
		expect(await this.#other.getDeltaChannelHistory(query)).toEqual(expected);
		return answer;
	}
}

describe("A DeltaChannel on PostgreSQL", () => {
	it.each(Array.from({ length: 8 }, (_, i) => i + 1))(
		"equals a reducer after a random history, on every server, seed %i",
		async (seed) => {
			const schema = await emptySchema();
			const saver = new CheckedSaver(schema);
			expect(await differences(randomScenario(seed, 5), saver)).toEqual([]);
			await saver.close();
			await schema.leave();
		},
	);
});

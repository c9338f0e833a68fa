import { PostgresSaver } from "../src/postgres.ts";
import { randomScenario } from "./support/delta-random.ts";
import { differences } from "./support/delta-world.ts";
import { emptySchema, type TestSchema } from "./support/postgres.ts";

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
	it.each(Array.from({ length: 12 }, (_, i) => i + 1))(
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

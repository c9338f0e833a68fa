import { Random } from "../bench/random.ts";
import { makeTemporaryFolder, removeFolder } from "../support/run-node.ts";
import { type FlipFixture, makeFixtures } from "./flip-rounds.ts";

/** `npm run flips` has thousands. */
const FLIPS = 12;

describe("a byte that has changed", () => {
	let folder = "";
	let fixtures: FlipFixture[] = [];

	beforeAll(async () => {
		folder = makeTemporaryFolder();
		fixtures = await makeFixtures(folder);
	});
	afterAll(() => removeFolder(folder));

	it("in a log loses what comes after it, and nothing else", async () => {
		const fixture = fixtures.find(({ name }) => name === "with-log") as FlipFixture;
		for (const offset of [1, 9, 17, 26, 5000, 20_000]) {
			const { wrong, unrepaired } = await fixture.try({ end: "-wal", offset, where: "log", xor: 4 });
			expect({ offset, wrong, unrepaired }).toEqual({ offset, wrong: [], unrepaired: [] });
		}
	});

	it("makes nothing read as another value; what it hides is named, and can be repaired", async () => {
		for (let n = 0; n < FLIPS; n++) {
			const random = new Random(2_000_003 + n);
			const fixture = fixtures[n % fixtures.length] as FlipFixture;
			const { flip, wrong, unnamed, unrepaired } = await fixture.try(fixture.choose(random));
			expect({ flip, wrong, unnamed, unrepaired }).toEqual({ flip, wrong: [], unnamed: [], unrepaired: [] });
		}
	});
});

import { Random } from "../bench/random.ts";
import { makeTemporaryFolder, removeFolder } from "../support/run-node.ts";
import { type FlipFixture, makeFixtures } from "./flip-rounds.ts";

/** `npm run flips` has thousands. */
const FLIPS = 24;

describe("a byte that has changed", () => {
	let folder = "";
	let fixtures: FlipFixture[] = [];

	beforeAll(async () => {
		folder = makeTemporaryFolder();
		fixtures = await makeFixtures(folder);
	});
	afterAll(() => removeFolder(folder));

	it("has no effect on what is read, or is reported, and can be repaired", async () => {
		for (let n = 0; n < FLIPS; n++) {
			const random = new Random(2_000_003 + n);
			const fixture = fixtures[n % fixtures.length] as FlipFixture;
			const { flip, wrong, unrepaired } = await fixture.try(fixture.choose(random));
			expect({ flip, wrong, unrepaired }).toEqual({ flip, wrong: [], unrepaired: [] });
		}
	});
});

import { crash } from "./crash-rounds.ts";

/** `npm run crash` has thousands. */
const KILLS = 12;

describe("a process that is killed", () => {
	it("leaves everything behind that it has acknowledged, and nothing half done", async () => {
		const { kills, problems } = await crash({ kills: KILLS, seed: 2, lanes: 2 });
		expect(problems).toEqual([]);
		expect(kills.random + kills.fault).toBeGreaterThanOrEqual(KILLS);
		expect(kills.fault).toBeGreaterThan(0);
	});
});

import { soak } from "./soak-run.ts";

describe("four processes on one file", () => {
	it("do not get in each other's way, and leave what each has stored", async () => {
		// `npm run soak` takes five minutes.
		const { operations, problems } = await soak(4, 3, 2);
		expect(problems).toEqual([]);
		expect(operations).toBeGreaterThan(0);
	});
});

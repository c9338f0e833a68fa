import { killUnderLoad } from "./crash/postgres-kills.ts";

describe("A server that is killed under load", () => {
	it("loses and doubles nothing that was acknowledged, and the saver goes on by itself", async () => {
		const { kills, faults, checkpoints } = await killUnderLoad(6, 20261116);
		expect(faults).toEqual([]);
		expect(kills).toBe(6);
		expect(checkpoints).toBeGreaterThan(50);
	});
});

import { Random } from "../../bench/random.ts";
import { memory } from "../support/backends.ts";
import { type Connect, cutConnections } from "../support/cuts.ts";

/** `npm run cuts` does it a thousand times, on every backend. */
describe.each<Connect>(["since", "websocket"])("A client that connects again by %s", (connect) => {
	it("gets every event once and in order, wherever the connection was cut", async () => {
		const { saver, close } = await memory.open();
		const { cuts, events } = await cutConnections(saver, new Random(7), connect, 25);
		expect(cuts).toBeGreaterThanOrEqual(25);
		expect(events).toBeGreaterThan(100);
		await close();
	});
});

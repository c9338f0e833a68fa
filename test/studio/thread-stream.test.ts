import { setImmediate } from "node:timers/promises";
import { ThreadFollower } from "../../src/studio/routes/thread-stream.ts";
import { EventLog } from "../../src/studio/runs/event-log.ts";
import type { Run } from "../../src/studio/runs/run.ts";

/** A run of which nothing matters but its events. */
const makeRun = (id: string, most?: number) => ({ id, log: new EventLog("needed", most) }) as Run;

describe("Who follows the runs of a thread", () => {
	it("gets their events in order, and none is held after that", async () => {
		const follower = new ThreadFollower();
		const runs = [makeRun("a"), makeRun("b")];
		for (const run of runs) follower.add(run);
		for (const { log } of runs) {
			log.push("n", 1);
			log.end();
		}
		const ids: unknown[] = [];
		for await (const { id, event } of follower.read()) {
			ids.push(id ?? event);
			if (ids.length === 4) break;
		}
		expect(ids).toEqual(["a:0", "metadata", "b:0", "metadata"]);
		expect(runs.map(({ log }) => log.characters)).toEqual([0, 0]);
	});

	it("is cut off when it does not read, and holds nothing any more", async () => {
		const follower = new ThreadFollower(100);
		const events = follower.read();
		const runs = [makeRun("a"), makeRun("b"), makeRun("c")];
		for (const run of runs) follower.add(run);
		for (const { log } of runs) {
			for (let n = 0; n < 3; n++) log.push("n", "x".repeat(38));
			log.end();
			await setImmediate();
		}
		expect(runs.map(({ log }) => log.characters)).toEqual([0, 0, 0]);
		expect(runs.some(({ log }) => log.isRead)).toBe(false);
		await expect(events.next()).rejects.toThrow("too slow");
	});

	it("holds nothing when it leaves", async () => {
		const follower = new ThreadFollower();
		const run = makeRun("a");
		follower.add(run);
		for (let n = 0; n < 3; n++) run.log.push("n", n);
		await setImmediate();
		follower.stop();
		await setImmediate();
		expect(run.log.isRead).toBe(false);
		expect(run.log.characters).toBe(0);
	});

	it("learns that an event is gone when it comes to it", async () => {
		const follower = new ThreadFollower();
		const run = makeRun("a", 10);
		follower.add(run);
		run.log.push("n", "first");
		run.log.push("n", "x".repeat(20));
		await setImmediate();
		await expect(follower.read().next()).rejects.toThrow("too slow");
	});
});

import { EventLog } from "../../src/studio/runs/event-log.ts";
import { collect } from "./support/server.ts";

const texts = (events: { data: string }[]) => events.map(({ data }) => JSON.parse(data));

describe("A log of events", () => {
	it("gives every reader every event, whenever it comes", async () => {
		const log = new EventLog("all");
		const early = collect(log.read());
		for (let n = 0; n < 5; n++) {
			log.push("n", n);
			await Promise.resolve();
		}
		const late = collect(log.read());
		const resumed = collect(log.read(2));
		log.push("n", 5);
		log.end();
		expect(texts(await early)).toEqual([0, 1, 2, 3, 4, 5]);
		expect(texts(await late)).toEqual([0, 1, 2, 3, 4, 5]);
		expect((await resumed).map(({ id }) => id)).toEqual([3, 4, 5]);
		expect(texts(await collect(log.read(4)))).toEqual([5]);
		expect(await collect(log.read(99))).toEqual([]);
	});

	it("holds what nobody has read, until somebody has", async () => {
		const log = new EventLog("unread");
		const fast = log.read();
		const slow = log.read();
		const firsts = [slow.next(), fast.next()];
		log.push("n", 1);
		log.push("n", 2);
		for (const first of firsts) expect((await first).value).toMatchObject({ data: "1" });
		expect((await fast.next()).value).toMatchObject({ data: "2" });
		expect((await slow.next()).value).toMatchObject({ data: "2" });
		let isEmpty = false;
		log.end(() => {
			isEmpty = true;
		});
		expect(isEmpty).toBe(true);
		expect(await collect(log.read())).toEqual([]);
	});

	it("holds only what is about to be read, if nobody is to come later", async () => {
		const log = new EventLog("needed");
		log.push("n", 1);
		const reader = log.read();
		const first = reader.next();
		log.push("n", 2);
		log.push("n", 3);
		expect((await first).value).toMatchObject({ data: "2" });
		let isEmpty = false;
		log.end(() => {
			isEmpty = true;
		});
		expect(isEmpty).toBe(false);
		expect(texts(await collect(reader))).toEqual([3]);
		expect(isEmpty).toBe(true);
	});

	it("cuts off a reader that is too far behind, and no other", async () => {
		const log = new EventLog("all", 100);
		const slow = log.read();
		const text = "x".repeat(38);
		log.push("n", text);
		await slow.next();
		for (let n = 0; n < 4; n++) log.push("n", text);
		await expect(slow.next()).rejects.toThrow("too slow");
		log.end();
		expect((await collect(log.read())).map(({ id }) => id)).toEqual([3, 4]);
	});

	it("looks at no other reader when one goes on", async () => {
		const log = new EventLog("needed");
		// More than a call can have arguments.
		const readers = Array.from({ length: 150_000 }, () => log.read());
		const firsts = readers.map((reader) => reader.next());
		log.push("n", 1);
		expect((await Promise.all(firsts)).every(({ value }) => value.data === "1")).toBe(true);
		expect(log.characters).toBe(0);
	});

	it("wakes only the reader that leaves", async () => {
		const log = new EventLog("needed");
		const { signal } = new AbortController();
		const looks = vi.spyOn(signal, "aborted", "get");
		const stay = collect(log.read(undefined, { signal }));
		const gone = new AbortController();
		const leave = collect(log.read(undefined, { signal: gone.signal }));
		gone.abort();
		await leave;
		expect(looks).toHaveBeenCalledTimes(1);
		log.end();
		expect(await stay).toEqual([]);
		expect(log.isRead).toBe(false);
	});

	it("keeps events as they were when they were logged", async () => {
		const log = new EventLog("all");
		const state = { list: [1] };
		log.push("values", state);
		state.list.push(2);
		log.end();
		expect(texts(await collect(log.read()))).toEqual([{ list: [1] }]);
	});
});

import { Client } from "@langchain/langgraph-sdk";
import { sseResponse } from "../../src/studio/http/sse.ts";
import { EventLog } from "../../src/studio/runs/event-log.ts";
import { collect } from "./support/server.ts";

afterEach(() => void vi.useRealTimers());

describe("A stream that is silent for long", () => {
	it("is kept alive, and the client hears of nothing but events", async () => {
		vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
		const log = new EventLog("all");
		const response = sseResponse(log.read(), { headers: {}, onLeave: () => {} });
		const [copy, body] = response.body!.tee();
		const fetch = async () => new Response(body, response);
		const client = new Client({ apiUrl: "http://localhost", apiKey: null, callerOptions: { fetch } });
		const received = collect(client.runs.joinStream("thread", "run"));
		for (const n of [0, 1, 2]) {
			await new Promise((resolve) => setTimeout(resolve, 10));
			vi.advanceTimersByTime(30_000);
			log.push("values", { n });
		}
		log.end();
		expect((await received).map(({ data }) => data)).toEqual([{ n: 0 }, { n: 1 }, { n: 2 }]);
		expect((await new Response(copy).text()).match(/heartbeat/g)?.length).toBeGreaterThan(1);
	});
});

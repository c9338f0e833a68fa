import { sqlite } from "../support/backends.ts";
import { OfficialServer } from "../support/official-server.ts";
import { haveProtocolSession } from "../support/protocol-session.ts";
import { startServer } from "../support/server.ts";
import { type Answer, normalize, type Transcript, withoutExtras } from "../support/session.ts";

interface Difference {
	/** What is wrong with the official server's answer. */
	why: string;
	/** What ours has to be, at least. */
	ours: { status?: number; body?: unknown };
}

const inPlainWords = "Tells what is wrong with a field in the words of its validator, as JSON.";
const partOfMessages =
	"Leaves out parts of messages, and the node that messages are of, which the protocol's types have.";
const oneRun = "Answers no other run.start while a run is under way, and loses the events of the first when it does.";
const notHere = "Does not have it.";
const nothingYet = "Says of every command that it does not know that there is no run.";
const error = (code: string) => ({ type: "error", error: code });
const steps = (name: string) => [`${name} started`, `${name} worked`, `${name} done`];

/** Where the official server is wrong. Everything else must be the same. */
const differences: Record<string, Difference> = {
	"chat: events": {
		why: partOfMessages,
		ours: { body: expect.arrayContaining([{ method: "values", params: expect.anything() }]) },
	},
	"chat: events since": { why: partOfMessages, ours: { status: 200 } },
	"chat: thread": {
		why: "Says of values only what its last run came to by the other routes.",
		ours: { body: { status: "idle", values: { messages: [{}, {}, {}, {}] } } },
	},
	"chat: runs": {
		why: "Lists the oldest run first, with keys that are its own business.",
		ours: { body: [{ kwargs: { input: { messages: [{ content: "two" }] } } }, {}] },
	},
	"ask: answer again": {
		why: "Does not tell which interrupt it means.",
		ours: { status: 200, body: error("no_such_interrupt") },
	},
	"fail: events": {
		why: "Wraps an error into another, as JSON in its message.",
		ours: { body: expect.arrayContaining([lifecycle({ event: "failed", graph_name: "work", error: "broken" })]) },
	},
	"time: events from the head": {
		why: "Starts from the checkpoint of an earlier request again, instead of from the head.",
		ours: {
			body: expect.arrayContaining([
				{
					method: "values",
					params: {
						namespace: [],
						data: {
							name: "three",
							log: ["one started", ...steps("two"), ...steps("three")],
						},
					},
				},
			]),
		},
	},
	"busy: reject": { why: oneRun, ours: { status: 200, body: error("invalid_argument") } },
	"busy: enqueue": { why: oneRun, ours: { status: 200, body: { type: "success" } } },
	"busy: events": { why: oneRun, ours: { status: 200 } },
	"wrong: unknown command": { why: nothingYet, ours: { status: 200, body: error("unknown_command") } },
	"wrong: no id": { why: inPlainWords, ours: { status: 400, body: error("invalid_argument") } },
	"wrong: negative id": { why: inPlainWords, ours: { status: 400, body: error("invalid_argument") } },
	"wrong: no method": { why: inPlainWords, ours: { status: 400, body: error("invalid_argument") } },
	"wrong: list": { why: notHere, ours: { status: 404 } },
	"wrong: inject": { why: notHere, ours: { status: 200, body: error("invalid_argument") } },
	"wrong: fork": { why: notHere, ours: { status: 404 } },
	"wrong: no channels": { why: inPlainWords, ours: { status: 400 } },
	"wrong: channels are text": { why: inPlainWords, ours: { status: 400 } },
	"wrong: depth": { why: inPlainWords, ours: { status: 400 } },
	"wrong: since": { why: inPlainWords, ours: { status: 400 } },
	"select of state": {
		why: notHere,
		ours: { body: { next: [], values: { log: ["w started", "w worked", "w done"] } } },
	},
	"patch state": { why: notHere, ours: { status: 200, body: { metadata: { a: 1 } } } },
	crons: { why: "Fails, as if that were a mistake of its own.", ours: { status: 422 } },
};

function lifecycle(data: object) {
	return { method: "lifecycle", params: { namespace: [], data } };
}

describe("The same session in the thread protocol with langgraphjs dev and with our server", () => {
	let theirs: Transcript;
	let ours: Transcript;
	beforeAll(async () => {
		const official = await OfficialServer.start();
		try {
			const { url } = await startServer(sqlite);
			ours = await haveProtocolSession(url);
			theirs = await haveProtocolSession(official.url);
		} finally {
			await official.stop();
		}
	});

	/** Both answers, comparable. */
	function compare(name: string): { ours: Answer; theirs: Answer } {
		const normalized = normalize(theirs[name] as Answer);
		return { theirs: normalized, ours: withoutExtras(normalize(ours[name] as Answer), normalized) };
	}

	it("has more than seventy requests", () => {
		expect(Object.keys(theirs).length).toBeGreaterThan(70);
		expect(Object.keys(ours).sort()).toEqual(Object.keys(theirs).sort());
	});

	it("gives the same answers", () => {
		for (const name of Object.keys(theirs).filter((one) => !(one in differences))) {
			const answers = compare(name);
			expect(answers.ours, name).toEqual(answers.theirs);
		}
	});

	it.each(Object.entries(differences))("except: %s", (name, difference) => {
		const answers = compare(name);
		expect(answers.ours, difference.why).not.toEqual(answers.theirs);
		expect(normalize(ours[name] as Answer), difference.why).toMatchObject(difference.ours);
	});
});

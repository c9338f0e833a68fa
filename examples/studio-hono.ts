/**
 * The handler inside a Hono app whose users see no threads but their own. With Express it would be
 * `app.use("/langgraph", toNodeListener(handler))`, with Next.js a route that exports it as GET, POST and so on.
 *
 *     npx tsx examples/studio-hono.ts
 */
import { randomUUID } from "node:crypto";
import { Annotation, StateGraph } from "@langchain/langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { Hono } from "hono";
import { MemorySaver } from "langgraph-checkpoint-delta";
import { createStudioHandler } from "langgraph-checkpoint-delta/studio";

const graph = new StateGraph(Annotation.Root({ name: Annotation<string>(), greeting: Annotation<string>() }))
	.addNode("greet", ({ name }) => ({ greeting: `Hello, ${name}!` }))
	.addEdge("__start__", "greet")
	.compile({ checkpointer: new MemorySaver() });

const users = new Map([
	["token of Ada", "ada"],
	["token of Grace", "grace"],
]);

const handler = createStudioHandler({
	graphs: { agent: graph },
	allowOrigins: ["https://app.example.com"],
	authorize: (request) => {
		const user = users.get(request.headers.get("authorization") ?? "");
		if (user === undefined) return false;
		return {
			caller: user,
			mayAccess: (id) => id.startsWith(`${user}:`),
			newThreadId: () => `${user}:${randomUUID()}`,
		};
	},
});

const app = new Hono();
app.get("/", (c) => c.text("the application"));
app.mount("/langgraph", handler);

// Here the client calls the app directly; a browser or another server would do so over the network.
function clientOf(token: string): Client {
	const fetch = (url: string, init: RequestInit) => app.request(url, init);
	const callerOptions = { fetch: fetch as typeof globalThis.fetch, maxRetries: 0 };
	return new Client({
		apiUrl: "https://app.example.com/langgraph",
		defaultHeaders: { authorization: token },
		callerOptions,
	});
}

const ada = clientOf("token of Ada");
const grace = clientOf("token of Grace");
const thread = await ada.threads.create();
console.log("Ada's run:", await ada.runs.wait(thread.thread_id, "agent", { input: { name: "Ada" } }));
console.log(
	"Ada sees",
	(await ada.threads.search()).length,
	"thread, Grace sees",
	(await grace.threads.search()).length,
);
await grace.threads
	.get(thread.thread_id)
	.catch((error) => console.log("Grace asks for it:", error.message.slice(0, 24)));
await clientOf("guessed")
	.threads.search()
	.catch((error) => console.log("A stranger asks:", error.message));
console.log("The rest of the app:", await (await app.request("/")).text());
await handler.close();

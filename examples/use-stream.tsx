/**
 * A page with LangGraph's own React hook, `useStream`, on a graph of yours: it streams, asks a person, and resumes.
 *
 * `Approval` is what you would write for a browser. Here the page is one of jsdom, and a script clicks.
 *
 *     npx tsx examples/use-stream.tsx
 */
import { Annotation, interrupt, StateGraph } from "@langchain/langgraph";
import { useStream } from "@langchain/langgraph-sdk/react";
import { JSDOM } from "jsdom";
import { MemorySaver } from "langgraph-checkpoint-delta";
import { createStudioHandler, serveStudio } from "langgraph-checkpoint-delta/studio";
import { useState } from "react";

const State = Annotation.Root({ amount: Annotation<number>(), status: Annotation<string>() });
const graph = new StateGraph(State)
	.addNode("check", ({ amount }) => ({ status: `${amount} EUR, to be approved` }))
	.addNode("pay", ({ amount }) => {
		const by = interrupt<{ question: string }, string>({ question: `Pay ${amount} EUR?` });
		return { status: `${amount} EUR, approved by ${by}` };
	})
	.addEdge("__start__", "check")
	.addEdge("check", "pay")
	.compile({ checkpointer: new MemorySaver() });

function Approval({ apiUrl }: { apiUrl: string }) {
	const [threadId, onThreadId] = useState<string | null>(null);
	const stream = useStream<typeof State.State, { InterruptType: { question: string } }>({
		apiUrl,
		assistantId: "payments",
		threadId,
		onThreadId,
	});
	return (
		<main>
			<p>{stream.values.status ?? "nothing to pay"}</p>
			{stream.interrupt?.value && <p>{stream.interrupt.value.question}</p>}
			<button type="button" onClick={() => stream.submit({ amount: 40 })}>
				Ask
			</button>
			<button type="button" onClick={() => stream.submit(undefined, { command: { resume: "Grace" } })}>
				Approve
			</button>
		</main>
	);
}

const { window } = new JSDOM("<div id=root></div>", { url: "http://localhost/", pretendToBeVisual: true });
for (const name of ["window", "document", "navigator"] as const)
	Object.defineProperty(globalThis, name, { value: window[name], configurable: true });
const { createRoot } = await import("react-dom/client");

const server = await serveStudio(createStudioHandler({ graphs: { payments: graph } }), { port: 0 });
const root = createRoot(window.document.getElementById("root") as HTMLElement);
root.render(<Approval apiUrl={server.url} />);

const lines = () => [...window.document.querySelectorAll("p")].map((line) => line.textContent ?? "");
const click = (index: number) => window.document.querySelectorAll("button")[index]?.click();
async function shows(text: string): Promise<void> {
	while (!lines().some((line) => line.includes(text))) await new Promise((resolve) => setTimeout(resolve, 5));
	console.log("The page shows:", lines().join(" | "));
}

await shows("nothing to pay");
click(0);
await shows("Pay 40 EUR?");
click(1);
await shows("approved by Grace");
root.unmount();
await server.close();
window.close();

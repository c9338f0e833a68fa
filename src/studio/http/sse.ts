/** A line now and then tells both sides that the connection is alive. */
const HEARTBEAT_MS = 15_000;
/** A comment. No empty line follows: LangGraph's client would take that for the end of another event. */
const SSE_HEARTBEAT = ": heartbeat\n";

const encoder = new TextEncoder();

/** An event as it is sent: its data is JSON already. */
export interface SseEvent {
	readonly id?: number | string;
	readonly event: string;
	readonly data: string;
}

/** Server-sent events. `onLeave` is called if the client goes before the end. */
export function sseResponse(
	events: AsyncGenerator<SseEvent>,
	{ headers = {}, onLeave }: { headers?: Record<string, string>; onLeave: () => void },
): Response {
	const lines = map(events, ({ id, event, data }) => {
		const lines = [...(id === undefined ? [] : [`id: ${id}`]), `event: ${event}`, `data: ${data}`];
		return `${lines.join("\n")}\n\n`;
	});
	return streamResponse(lines, SSE_HEARTBEAT, {
		headers: {
			"content-type": "text/event-stream",
			"cache-control": "no-cache",
			"x-accel-buffering": "no",
			...headers,
		},
		onLeave,
	});
}

/** JSON that may take long to come: white space before it keeps the connection alive. */
export function slowJsonResponse(
	result: Promise<string>,
	{ headers, onLeave }: { headers: Record<string, string>; onLeave: () => void },
): Response {
	const text = (async function* () {
		yield await result;
	})();
	return streamResponse(text, "\n", { headers: { "content-type": "application/json", ...headers }, onLeave });
}

function streamResponse(
	text: AsyncGenerator<string>,
	heartbeat: string,
	{ headers, onLeave }: { headers: Record<string, string>; onLeave: () => void },
): Response {
	let timer: ReturnType<typeof setInterval> | undefined;
	const body = new ReadableStream<Uint8Array>({
		start(controller) {
			timer = setInterval(() => {
				if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(heartbeat));
			}, HEARTBEAT_MS);
			timer.unref();
		},
		async pull(controller) {
			try {
				const { done, value } = await text.next();
				if (!done) return controller.enqueue(encoder.encode(value));
				clearInterval(timer);
				controller.close();
			} catch (error) {
				clearInterval(timer);
				controller.error(error);
			}
		},
		cancel() {
			clearInterval(timer);
			onLeave();
			// The generator may be waiting for an event that never comes: it ends by itself when the run does.
			void text.return(undefined);
		},
	});
	return new Response(body, { headers });
}

async function* map<T>(items: AsyncGenerator<T>, change: (item: T) => string): AsyncGenerator<string> {
	for await (const item of items) yield change(item);
}

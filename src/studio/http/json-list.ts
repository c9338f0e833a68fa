import { HttpError } from "./http-error.ts";
import { toJson } from "./json.ts";

const encoder = new TextEncoder();

/** An array as JSON, made item by item: no more of it is held than may be sent. */
export class JsonList {
	readonly #most: number;
	readonly #chunks: Uint8Array[] = [];
	#bytes = 0;

	/** @param most how many bytes it may have */
	constructor(most: number) {
		this.#most = most;
	}

	get length(): number {
		return this.#chunks.length;
	}

	/** Refuses the request if this is too much. Clients do not try again after status 422, as they do after 413. */
	push(item: unknown): void {
		const chunk = encoder.encode(`${this.length === 0 ? "" : ","}${toJson(item)}`);
		this.#bytes += chunk.byteLength;
		if (this.#bytes > this.#most)
			throw new HttpError(
				422,
				`The answer is larger than ${this.#most} bytes after ${this.length} items: ask for fewer with \`limit\`, or for less of each with \`select\` where there is one.`,
			);
		this.#chunks.push(chunk);
	}

	/** @param name of the field that the array is sent in; by itself if there is none */
	respond(headers: Record<string, string> = {}, name?: string): Response {
		const [start, end] = name === undefined ? ["[", "]"] : [`{"${name}":[`, "]}"];
		const chunks = [encoder.encode(start), ...this.#chunks, encoder.encode(end)].values();
		const body = new ReadableStream<Uint8Array>({
			pull(controller) {
				const { done, value } = chunks.next();
				if (done) controller.close();
				else controller.enqueue(value);
			},
		});
		return new Response(body, { headers: { "content-type": "application/json", ...headers } });
	}
}

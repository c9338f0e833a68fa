import { HttpError } from "./http-error.ts";
import { measure } from "./measure.ts";

/** The JSON in a request's body, whatever content type it claims; `undefined` if there is none. */
export async function readJson(request: Request, maxBytes: number): Promise<unknown> {
	const text = await readText(request, maxBytes);
	return text.trim() === "" ? undefined : parseJson(text);
}

/** What JSON stands for. */
export function parseJson(text: string): unknown {
	const json = parse(text);
	// Much that is done with it later is recursive.
	measure(json);
	return json;
}

function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		throw new HttpError(400, "Malformed JSON in request body");
	}
}

async function readText(request: Request, maxBytes: number): Promise<string> {
	const tooLarge = new HttpError(413, `The request body is larger than ${maxBytes} bytes.`);
	if (Number(request.headers.get("content-length")) > maxBytes) throw tooLarge;
	if (request.body === null) return "";
	const decoder = new TextDecoder("utf-8", { fatal: true });
	let text = "";
	let bytes = 0;
	try {
		for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
			bytes += chunk.byteLength;
			if (bytes > maxBytes) throw tooLarge;
			text += decoder.decode(chunk, { stream: true });
		}
		return text + decoder.decode();
	} catch (error) {
		if (error instanceof HttpError) throw error;
		throw new HttpError(400, "The request body can't be read as UTF-8.");
	}
}

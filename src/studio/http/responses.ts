import { toJson } from "./json.ts";

export function json(value: unknown, headers: Record<string, string> = {}): Response {
	return new Response(toJson(value), { headers: { "content-type": "application/json", ...headers } });
}

export function noContent(status: 202 | 204 = 204): Response {
	return new Response(null, { status });
}

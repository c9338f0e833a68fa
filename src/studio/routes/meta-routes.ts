import { createRequire } from "node:module";
import type { Call } from "../call.ts";
import { json } from "../http/responses.ts";
import type { Route } from "../http/router.ts";

/** The version of LangGraph's server whose API this is: Studio asks for it. */
const API_VERSION = "1.5.1";

/** Whether the server is there, and what it can do. */
export const metaRoutes: Route<Call>[] = [
	{ method: "GET", path: "/ok", handle: () => json({ ok: true }) },
	{ method: "GET", path: "/info", handle: showInfo },
];

function showInfo(): Response {
	const flags = {
		assistants: true,
		crons: false,
		langsmith: false,
		langsmith_tracing_replicas: true,
		stream_namespaces: true,
	};
	return json({ version: API_VERSION, langgraph_js_version: langgraphVersion(), context: "js", flags });
}

function langgraphVersion(): string | undefined {
	try {
		return createRequire(import.meta.url)("@langchain/langgraph/package.json").version;
	} catch {
		// In a bundle there are no packages.
		return undefined;
	}
}

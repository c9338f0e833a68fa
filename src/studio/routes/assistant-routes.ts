import type { Call } from "../call.ts";
import type { Graph } from "../graphs/graph.ts";
import { schemasOf } from "../graphs/schemas.ts";
import { readFlag } from "../http/fields.ts";
import { paginate, select } from "../http/pages.ts";
import { json } from "../http/responses.ts";
import type { Route } from "../http/router.ts";

/** What can be run, and what it looks like. */
export const assistantRoutes: Route<Call>[] = [
	{ method: "POST", path: "/assistants/search", isRead: true, handle: searchAssistants },
	{ method: "POST", path: "/assistants/count", isRead: true, handle: countAssistants },
	{ method: "GET", path: "/assistants/:assistant_id", handle: showAssistant },
	{ method: "GET", path: "/assistants/:assistant_id/graph", handle: drawGraph },
	{ method: "GET", path: "/assistants/:assistant_id/schemas", handle: showSchemas },
	{ method: "GET", path: "/assistants/:assistant_id/subgraphs/:namespace?", handle: showSubgraphs },
];

async function searchAssistants(call: Call): Promise<Response> {
	const fields = await call.fields();
	const { page, headers } = paginate(call.studio.assistants.search(fields), fields);
	const names = fields.texts("select");
	return json(
		page.map((assistant) => select(assistant, names)),
		headers,
	);
}

async function countAssistants(call: Call): Promise<Response> {
	return json(call.studio.assistants.search(await call.fields()).length);
}

function showAssistant(call: Call): Response {
	return json(call.studio.assistants.describe(graphIdOf(call)));
}

async function drawGraph(call: Call): Promise<Response> {
	const drawn = await (await graphOf(call)).getGraphAsync({ xray: readDepth(call.query) });
	return json(drawn.toJSON());
}

async function showSchemas(call: Call): Promise<Response> {
	const { state, input, output, config } = schemasOf(await graphOf(call));
	return json({
		graph_id: graphIdOf(call),
		input_schema: input,
		output_schema: output,
		state_schema: state,
		config_schema: config,
		// To LangGraph.js they are one and the same.
		context_schema: config,
	});
}

async function showSubgraphs(call: Call): Promise<Response> {
	const graph = await graphOf(call);
	const subgraphs = graph.getSubgraphsAsync(call.params.namespace, readFlag(call.query, "recurse"));
	const found: [string, unknown][] = [];
	for await (const [name, subgraph] of subgraphs) found.push([name, schemasOf(subgraph)]);
	return json(Object.fromEntries(found));
}

function graphIdOf(call: Call): string {
	return call.studio.assistants.mustFind(call.param("assistant_id"));
}

function graphOf(call: Call): Promise<Graph> {
	return call.studio.graphs.get(graphIdOf(call));
}

/** How many levels of subgraphs to draw: all, none, or so many. */
function readDepth(query: URLSearchParams): boolean | number {
	const levels = Number(query.get("xray"));
	return Number.isInteger(levels) && levels > 1 ? levels : readFlag(query, "xray");
}

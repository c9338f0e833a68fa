import type { Call } from "../call.ts";
import type { View } from "../graphs/assistants.ts";
import type { Graph } from "../graphs/graph.ts";
import { schemasOf } from "../graphs/schemas.ts";
import type { Assistant } from "../graphs/stored-assistants.ts";
import { type Json, readFlag } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { paginate, select } from "../http/pages.ts";
import { json } from "../http/responses.ts";
import type { Route } from "../http/router.ts";
import { withoutSecrets } from "../runs/secrets.ts";

/** What can be run, and what it looks like. */
export const assistantRoutes: Route<Call>[] = [
	{ method: "POST", path: "/assistants/search", isRead: true, handle: searchAssistants },
	{ method: "POST", path: "/assistants/count", isRead: true, handle: countAssistants },
	{ method: "POST", path: "/assistants", handle: createAssistant },
	{ method: "GET", path: "/assistants/:assistant_id", handle: showAssistant },
	{ method: "PATCH", path: "/assistants/:assistant_id", handle: updateAssistant },
	{ method: "DELETE", path: "/assistants/:assistant_id", handle: deleteAssistant },
	{ method: "POST", path: "/assistants/:assistant_id/versions", isRead: true, handle: showVersions },
	{ method: "POST", path: "/assistants/:assistant_id/latest", handle: setLatest },
	{ method: "GET", path: "/assistants/:assistant_id/graph", handle: drawGraph },
	{ method: "GET", path: "/assistants/:assistant_id/schemas", handle: showSchemas },
	{ method: "GET", path: "/assistants/:assistant_id/subgraphs/:namespace?", handle: showSubgraphs },
];

async function searchAssistants(call: Call): Promise<Response> {
	const fields = await call.fields();
	const { page, headers } = paginate(await call.studio.assistants.search(fields, viewOf(call)), fields);
	const names = fields.texts("select");
	const list = call.newList();
	for (const assistant of page) list.push(select({ ...assistant }, names));
	return list.respond(headers);
}

async function countAssistants(call: Call): Promise<Response> {
	return json((await call.studio.assistants.search(await call.fields(), viewOf(call))).length);
}

async function createAssistant(call: Call): Promise<Response> {
	call.access.checkAll();
	return json(await call.studio.assistants.create(await call.fields()));
}

async function showAssistant(call: Call): Promise<Response> {
	return json(viewOf(call)(await find(call)));
}

async function updateAssistant(call: Call): Promise<Response> {
	call.access.checkAll();
	return json(await call.studio.assistants.update(call.param("assistant_id"), await call.fields()));
}

/** Its threads stay, unless they are to go, too. */
async function deleteAssistant(call: Call): Promise<Response> {
	call.access.checkAll();
	const { studio, query } = call;
	const { assistant_id } = await studio.assistants.delete(call.param("assistant_id"));
	if (readFlag(query, "delete_threads"))
		for await (const thread of studio.threads.all()) {
			const { metadata } = await studio.describe(thread).record();
			if (metadata.assistant_id === assistant_id) await studio.runs.deleteThread(thread);
		}
	return json([assistant_id]);
}

async function showVersions(call: Call): Promise<Response> {
	const fields = await call.fields();
	const id = call.param("assistant_id");
	const versions = await call.studio.assistants.versions(id, fields.filter("metadata"), viewOf(call));
	const list = call.newList();
	for (const { updated_at: _, ...version } of paginate(versions, fields).page) list.push(version);
	return list.respond();
}

async function setLatest(call: Call): Promise<Response> {
	call.access.checkAll();
	const version = (await call.fields()).integer("version", 1, Number.MAX_SAFE_INTEGER);
	if (version === undefined) throw new HttpError(400, "`version` is required and must be a number.");
	return json(await call.studio.assistants.setLatest(call.param("assistant_id"), version));
}

async function drawGraph(call: Call): Promise<Response> {
	const drawn = await (await graphOf(call)).getGraphAsync({ xray: readDepth(call.query) });
	return json(drawn.toJSON());
}

async function showSchemas(call: Call): Promise<Response> {
	const { state, input, output, config } = schemasOf(await graphOf(call));
	return json({
		graph_id: (await find(call)).graph_id,
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

/** Who may change an assistant sees all of it. Others may run it, and its graph gets the secrets. */
function viewOf({ access }: Call): View {
	if (access.isFull) return (assistant) => assistant;
	return (assistant) => {
		const { config, context, metadata } = assistant;
		return { ...assistant, ...withoutSecrets({ config, context, metadata }) };
	};
}

function find(call: Call): Promise<Assistant> {
	return call.studio.assistants.mustFind(call.param("assistant_id"));
}

async function graphOf(call: Call): Promise<Graph> {
	const { graph_id, config } = await find(call);
	return call.studio.graphs.get(graph_id, { ...config, configurable: (config.configurable as Json) ?? {} });
}

/** How many levels of subgraphs to draw: all, none, or so many. */
function readDepth(query: URLSearchParams): boolean | number {
	const levels = Number(query.get("xray"));
	return Number.isInteger(levels) && levels > 1 ? levels : readFlag(query, "xray");
}

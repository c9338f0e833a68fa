import type { Call } from "../call.ts";
import { schemasOf } from "../graphs/schemas.ts";
import { readFlag } from "../http/fields.ts";
import { paginate, select } from "../http/pages.ts";
import { json } from "../http/responses.ts";
import type { Route } from "../http/router.ts";
import type { Studio } from "../studio.ts";

/** What can be run, and what it looks like. */
export function assistantRoutes({ assistants, graphs }: Studio): Route<Call>[] {
	const graphOf = ({ params }: Call) => graphs.get(assistants.mustFind(params.assistant_id as string));

	return [
		{
			method: "POST",
			path: "/assistants/search",
			isRead: true,
			handle: async (call) => {
				const fields = await call.fields();
				const { page, headers } = paginate(assistants.search(fields), fields);
				return json(
					page.map((assistant) => select(assistant, fields.texts("select"))),
					headers,
				);
			},
		},
		{
			method: "POST",
			path: "/assistants/count",
			isRead: true,
			handle: async (call) => json(assistants.search(await call.fields()).length),
		},
		{
			method: "GET",
			path: "/assistants/:assistant_id",
			handle: ({ params }) => json(assistants.describe(assistants.mustFind(params.assistant_id as string))),
		},
		{
			method: "GET",
			path: "/assistants/:assistant_id/graph",
			handle: async (call) => {
				const drawn = await (await graphOf(call)).getGraphAsync({ xray: readDepth(call.query) });
				return json(drawn.toJSON());
			},
		},
		{
			method: "GET",
			path: "/assistants/:assistant_id/schemas",
			handle: async (call) => {
				const { state, input, output, config } = schemasOf(await graphOf(call));
				return json({
					graph_id: assistants.mustFind(call.params.assistant_id as string),
					input_schema: input,
					output_schema: output,
					state_schema: state,
					config_schema: config,
					// To LangGraph.js they are one and the same.
					context_schema: config,
				});
			},
		},
		{
			method: "GET",
			path: "/assistants/:assistant_id/subgraphs/:namespace?",
			handle: async (call) => {
				const graph = await graphOf(call);
				const found: [string, unknown][] = [];
				for await (const [name, subgraph] of graph.getSubgraphsAsync(
					call.params.namespace,
					readFlag(call.query, "recurse"),
				))
					found.push([name, schemasOf(subgraph)]);
				return json(Object.fromEntries(found));
			},
		},
	];
}

/** How many levels of subgraphs to draw: all, none, or so many. */
function readDepth(query: URLSearchParams): boolean | number {
	const levels = Number(query.get("xray"));
	return Number.isInteger(levels) && levels > 1 ? levels : readFlag(query, "xray");
}

import { contains } from "../http/contains.ts";
import type { Fields, Json } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { assistantIdOf, type Graphs } from "./graphs.ts";

/** Every assistant of this server has this metadata, as those that LangGraph's server makes by itself. */
export const ASSISTANT_METADATA = { created_by: "system" };

/** The assistants: one for each graph. */
export class Assistants {
	readonly #graphs: Graphs;
	readonly #startedAt = new Date();

	constructor(graphs: Graphs) {
		this.#graphs = graphs;
	}

	/** The graph behind an assistant. */
	mustFind(assistantId: string): string {
		const graphId = this.#graphs.find(assistantId);
		if (graphId === undefined) throw new HttpError(404, "Assistant not found");
		return graphId;
	}

	describe(graphId: string): Json {
		return {
			assistant_id: assistantIdOf(graphId),
			version: 1,
			config: {},
			context: {},
			created_at: this.#startedAt,
			updated_at: this.#startedAt,
			graph_id: graphId,
			metadata: ASSISTANT_METADATA,
			name: graphId,
			description: null,
		};
	}

	/** All that a search looks for, in order. */
	search(query: Fields): Json[] {
		const graphId = query.text("graph_id");
		const name = query.text("name")?.toLowerCase();
		const metadata = query.filter("metadata");
		const found = this.#graphs.ids
			.filter((id) => graphId === undefined || id === graphId)
			.filter((id) => name === undefined || id.toLowerCase().includes(name))
			.filter(() => metadata === undefined || contains(ASSISTANT_METADATA, metadata))
			.map((id) => this.describe(id));
		const key = query.choice("sort_by", ["assistant_id", "graph_id", "name", "created_at", "updated_at"]);
		const isDescending = query.choice("sort_order", ["asc", "desc"]) === "desc";
		if (key !== undefined) found.sort((a, b) => compare(String(a[key]), String(b[key])) * (isDescending ? -1 : 1));
		return found;
	}
}

function compare(a: string, b: string): number {
	return a < b ? -1 : a > b ? 1 : 0;
}

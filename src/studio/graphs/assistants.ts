import { v7 as uuid7 } from "@langchain/core/utils/uuid";
import { contains } from "../http/contains.ts";
import type { Fields, Json } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { readConfig } from "../runs/run-request.ts";
import { assistantIdOf, type Graphs } from "./graphs.ts";
import { type Assistant, StoredAssistants } from "./stored-assistants.ts";

/** The assistant of a graph has this metadata, as those that LangGraph's server makes by itself. */
const SYSTEM_METADATA = { created_by: "system" };

/** What a caller sees of an assistant. */
export type View = (assistant: Assistant) => Assistant;

/** The assistants: one for each graph, which is as the graph is, and those that clients made. */
export class Assistants {
	readonly #graphs: Graphs;
	readonly #stored: StoredAssistants;
	readonly #startedAt = new Date().toISOString();

	constructor(graphs: Graphs) {
		this.#graphs = graphs;
		this.#stored = new StoredAssistants(graphs);
	}

	/** @param assistantId an assistant's id, or a graph's */
	async find(assistantId: string): Promise<Assistant | undefined> {
		const graphId = this.#graphs.find(assistantId);
		if (graphId !== undefined) return this.#ofGraph(graphId);
		const stored = await this.#stored.find(assistantId);
		return stored !== undefined && this.#isServed(stored) ? stored : undefined;
	}

	async mustFind(assistantId: string): Promise<Assistant> {
		const assistant = await this.find(assistantId);
		if (assistant === undefined) throw new HttpError(404, "Assistant not found");
		return assistant;
	}

	/**
	 * All that a search looks for, in order.
	 *
	 * @param view an assistant as the caller may see it
	 */
	async search(query: Fields, view: View): Promise<Assistant[]> {
		const graphId = query.text("graph_id");
		const name = query.text("name")?.toLowerCase();
		const metadata = query.filter("metadata");
		const key = query.choice("sort_by", ["assistant_id", "graph_id", "name", "created_at", "updated_at"]);
		const isDescending = query.choice("sort_order", ["asc", "desc"]) === "desc";
		const stored = (await this.#stored.all()).filter((one) => this.#isServed(one));
		const found = [...this.#graphs.ids.map((id) => this.#ofGraph(id)), ...stored]
			.map(view)
			.filter((one) => graphId === undefined || one.graph_id === graphId)
			.filter((one) => name === undefined || one.name.toLowerCase().includes(name))
			.filter((one) => metadata === undefined || contains(one.metadata, metadata));
		if (key !== undefined) found.sort((a, b) => compare(String(a[key]), String(b[key])) * (isDescending ? -1 : 1));
		return found;
	}

	async create(fields: Fields): Promise<Assistant> {
		const graph_id = this.#readGraph(fields.mustText("graph_id"));
		const assistant_id = fields.text("assistant_id") ?? uuid7();
		const isFineIfKnown = fields.choice("if_exists", ["raise", "do_nothing"]) === "do_nothing";
		const now = new Date().toISOString();
		const made: Assistant = {
			assistant_id,
			version: 1,
			config: readConfigOf(fields) ?? {},
			context: fields.record("context") ?? {},
			created_at: now,
			updated_at: now,
			graph_id,
			metadata: fields.record("metadata") ?? {},
			name: fields.text("name") ?? "Untitled",
			description: fields.text("description") ?? null,
		};
		return this.#stored.change(assistant_id, async () => {
			const known = await this.find(assistant_id);
			if (known === undefined) return this.#stored.write(made);
			if (isFineIfKnown) return known;
			throw new HttpError(409, "Assistant already exists");
		});
	}

	/** Makes a new version, and the assistant that. */
	async update(assistantId: string, fields: Fields): Promise<Assistant> {
		const graphId = fields.text("graph_id");
		return this.#change(assistantId, async (before) => {
			const [last] = await this.#stored.versions(assistantId);
			return this.#stored.write({
				...before,
				version: (last?.version ?? before.version) + 1,
				graph_id: graphId === undefined ? before.graph_id : this.#readGraph(graphId),
				config: readConfigOf(fields) ?? before.config,
				context: fields.record("context") ?? before.context,
				metadata: { ...before.metadata, ...fields.record("metadata") },
				name: fields.text("name") ?? before.name,
				description: fields.text("description") ?? before.description,
				updated_at: new Date().toISOString(),
			});
		});
	}

	async versions(assistantId: string, metadata: Json | undefined, view: View): Promise<Assistant[]> {
		const assistant = await this.mustFind(assistantId);
		const stored = await this.#stored.versions(assistant.assistant_id);
		const versions = stored.length === 0 ? [assistant] : stored;
		return versions.map(view).filter((version) => metadata === undefined || contains(version.metadata, metadata));
	}

	/** Makes the assistant one of its versions. */
	async setLatest(assistantId: string, version: number): Promise<Assistant> {
		return this.#change(assistantId, async () => {
			const chosen = (await this.#stored.versions(assistantId)).find((one) => one.version === version);
			if (chosen === undefined) throw new HttpError(404, "Assistant version not found");
			return this.#stored.write({ ...chosen, updated_at: new Date().toISOString() });
		});
	}

	async delete(assistantId: string): Promise<Assistant> {
		return this.#change(assistantId, async (assistant) => {
			await this.#stored.delete(assistantId);
			return assistant;
		});
	}

	async #change<T>(assistantId: string, work: (before: Assistant) => Promise<T>): Promise<T> {
		if (this.#graphs.find(assistantId) !== undefined)
			throw new HttpError(409, "The assistant of a graph is as the graph is: create another to change it.");
		return this.#stored.change(assistantId, async () => work(await this.mustFind(assistantId)));
	}

	#ofGraph(graphId: string): Assistant {
		return {
			assistant_id: assistantIdOf(graphId),
			version: 1,
			config: {},
			context: {},
			created_at: this.#startedAt,
			updated_at: this.#startedAt,
			graph_id: graphId,
			metadata: SYSTEM_METADATA,
			name: graphId,
			description: null,
		};
	}

	#isServed({ graph_id }: Assistant): boolean {
		return this.#graphs.ids.includes(graph_id);
	}

	#readGraph(graphId: string): string {
		if (this.#graphs.ids.includes(graphId)) return graphId;
		throw new HttpError(404, `Graph "${graphId}" not found`);
	}
}

function readConfigOf(fields: Fields): Json | undefined {
	const config = fields.record("config");
	return config && readConfig(config);
}

function compare(a: string, b: string): number {
	return a < b ? -1 : a > b ? 1 : 0;
}

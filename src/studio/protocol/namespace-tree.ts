import { normalizeNamespaceSegment } from "@langchain/langgraph/stream";
import type { Json } from "../http/fields.ts";

interface Node {
	readonly namespace: string[];
	readonly graphName: string;
	status: string;
	readonly children: Map<string, Node>;
}

/** The graph that runs and the graphs inside of it, with what has become of each. */
export class NamespaceTree {
	readonly #root: Node;

	constructor(graphName: string) {
		this.#root = { namespace: [], graphName, status: "running", children: new Map() };
	}

	add(namespace: string[]): Node {
		let node = this.#root;
		for (const [i, segment] of namespace.entries()) {
			const child = node.children.get(segment) ?? {
				namespace: namespace.slice(0, i + 1),
				graphName: normalizeNamespaceSegment(segment),
				status: "started",
				children: new Map(),
			};
			node.children.set(segment, child);
			node = child;
		}
		return node;
	}

	/** Takes note of a lifecycle event. */
	set(namespace: string[], { event }: Json): void {
		this.add(namespace).status = String(event);
	}

	describe(node = this.#root): Json {
		const { namespace, status, graphName, children } = node;
		const described = [...children.values()].map((child) => this.describe(child));
		return { namespace, status, graph_name: graphName, ...(described.length > 0 && { children: described }) };
	}
}

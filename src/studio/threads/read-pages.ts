import type { RunnableConfig } from "@langchain/core/runnables";
import type { CheckpointListOptions } from "@langchain/langgraph-checkpoint";

/** As many as a list has if nothing else is said. */
const PAGE = 10;

/**
 * All checkpoints that a query finds, a page at a time: a saver may have read the values of many before it answers the first
 * of them.
 *
 * @param list asks a saver, or a graph, for checkpoints by descending id
 */
export async function* readPages<T extends { readonly config: RunnableConfig }>(
	list: (options: CheckpointListOptions) => AsyncIterable<T>,
	{ limit = Number.POSITIVE_INFINITY, ...query }: CheckpointListOptions,
): AsyncGenerator<T> {
	let { before } = query;
	for (let left = limit, count = PAGE; count === PAGE && left > 0; left -= count) {
		count = 0;
		for await (const item of list({ ...query, ...(before && { before }), limit: Math.min(left, PAGE) })) {
			before = { configurable: { checkpoint_id: item.config.configurable?.checkpoint_id } };
			count++;
			yield item;
		}
	}
}

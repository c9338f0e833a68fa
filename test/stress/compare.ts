import type { SqliteSaver } from "../../src/sqlite.ts";
import type { Model } from "../support/model.ts";

/** All that LangGraph sees of a thread. */
export async function readThread(saver: SqliteSaver, threadId: string): Promise<string> {
	const all: unknown[] = [];
	for await (const tuple of saver.list({ configurable: { thread_id: threadId } })) {
		const { checkpoint_ns: ns, checkpoint_id: id } = tuple.config.configurable ?? {};
		const { channel_values, channel_versions } = tuple.checkpoint;
		const parentId = tuple.parentConfig?.configurable?.checkpoint_id;
		all.push([ns, id, parentId, channel_values, channel_versions, tuple.metadata, tuple.pendingWrites]);
	}
	return JSON.stringify(all);
}

/** The same of the model. */
export function describeThread(model: Model, threadId: string): string {
	if (!model.threads.has(threadId)) return "[]";
	const all = model
		.list(threadId)
		.map(({ ns, id, parentId, values, versions, metadata }) => [
			ns,
			id,
			parentId,
			values,
			versions,
			metadata,
			model.pendingWrites(threadId, ns, id),
		]);
	return JSON.stringify(all);
}

/** Where two descriptions begin to differ. */
export function difference(found: string, expected: string): string {
	let at = 0;
	while (at < found.length && found[at] === expected[at]) at++;
	const around = (text: string) => text.slice(Math.max(0, at - 60), at + 120);
	return `…${around(found)}… instead of …${around(expected)}…`;
}

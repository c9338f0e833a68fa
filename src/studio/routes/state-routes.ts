import type { Call } from "../call.ts";
import { Fields, isRecord, readFlag, readInteger } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { json } from "../http/responses.ts";
import type { Route } from "../http/router.ts";
import { readCheckpoint } from "../states/read-checkpoint.ts";
import type { Studio } from "../studio.ts";

/** The states of threads: the newest, a past one, all of them; changed and forked. */
export function stateRoutes({ threads, runs, states }: Studio): Route<Call>[] {
	return [
		{
			method: "GET",
			path: "/threads/:thread_id/state",
			handle: async (call) => {
				const thread = await threads.mustFind(call.threadId);
				return json(await states.get(thread, {}, readFlag(call.query, "subgraphs")));
			},
		},
		{
			method: "POST",
			path: "/threads/:thread_id/state/checkpoint",
			isRead: true,
			handle: async (call) => {
				const thread = await threads.mustFind(call.threadId);
				const fields = await call.fields();
				const withSubgraphs = [true, "true", "1"].includes(fields.get("subgraphs") as string | boolean);
				return json(await states.get(thread, readCheckpoint(fields), withSubgraphs));
			},
		},
		{
			method: "GET",
			path: "/threads/:thread_id/state/:checkpoint_id",
			handle: async (call) => {
				const thread = await threads.mustFind(call.threadId);
				const { checkpoint_id } = call.params;
				return json(await states.get(thread, { checkpoint_id }, readFlag(call.query, "subgraphs")));
			},
		},
		{
			method: "POST",
			path: "/threads/:thread_id/state",
			handle: async (call) => {
				const { threadId } = call;
				const fields = await call.fields();
				const values = fields.get("values") ?? null;
				const checkpoint = await runs.whileIdle(threadId, async () => {
					const thread = await threads.mustFind(threadId);
					return states.update(thread, readCheckpoint(fields), values, fields.text("as_node"));
				});
				return json({ checkpoint, configurable: checkpoint });
			},
		},
		{
			method: "GET",
			path: "/threads/:thread_id/history",
			handle: async (call) => {
				const thread = await threads.mustFind(call.threadId);
				const limit = readInteger(call.query, "limit", 10);
				const before = call.query.get("before") ?? undefined;
				return json(await states.history(thread, {}, { limit, before, metadata: undefined }));
			},
		},
		{
			method: "POST",
			path: "/threads/:thread_id/history",
			isRead: true,
			handle: async (call) => {
				const thread = await threads.mustFind(call.threadId);
				const fields = await call.fields();
				const limit = fields.integer("limit", 0, Number.MAX_SAFE_INTEGER) ?? 10;
				const query = { limit, before: readBefore(fields.get("before")), metadata: fields.record("metadata") };
				return json(await states.history(thread, readCheckpoint(fields), query));
			},
		},
	];
}

/** A checkpoint's id, as text or in a config. */
function readBefore(before: unknown): string | undefined {
	if (before === undefined || typeof before === "string") return before;
	if (isRecord(before)) {
		const { configurable = before } = before;
		const id = isRecord(configurable) ? new Fields(configurable).text("checkpoint_id") : undefined;
		if (id !== undefined) return id;
	}
	throw new HttpError(400, "`before` must be a checkpoint id, or a config that has one.");
}

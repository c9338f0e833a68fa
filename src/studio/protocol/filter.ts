import { isSupportedChannel } from "@langchain/langgraph/stream";
import { type Fields, MOST_ITEMS } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { measure } from "../http/measure.ts";
import type { EventFilter } from "./thread-feed.ts";

/** How much memory a filter may take, about. A connection holds up to a thousand of them. */
const MOST_BYTES = 64 * 1024;

/** Which events a client asks for. */
export function readFilter(fields: Fields): EventFilter {
	const channels = fields.texts("channels") ?? [];
	const wrong = channels.find((channel) => !isSupportedChannel(channel));
	if (channels.length === 0 || wrong !== undefined)
		throw new HttpError(400, "`channels` must name channels of the protocol, such as values, messages or custom:name.");
	const depth = fields.integer("depth", 0, Number.MAX_SAFE_INTEGER);
	const filter = { channels, ...readNamespaces(fields), ...(depth !== undefined && { depth }) };
	const { values, bytes } = measure(filter);
	if (values <= MOST_ITEMS && bytes <= MOST_BYTES) return filter;
	throw new HttpError(400, `\`channels\` and \`namespaces\` must have at most ${MOST_ITEMS} values in all, of 64 KiB.`);
}

function readNamespaces(fields: Fields): Pick<EventFilter, "namespaces"> {
	const namespaces = fields.list("namespaces");
	if (namespaces === undefined) return {};
	const isPath = (path: unknown): path is string[] =>
		Array.isArray(path) && path.every((segment) => typeof segment === "string");
	if (!namespaces.every(isPath)) throw new HttpError(400, "`namespaces` must be an array of arrays of strings.");
	return { namespaces };
}

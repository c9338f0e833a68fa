import type { BaseStore, Item } from "@langchain/langgraph-checkpoint";
import type { Call } from "../call.ts";
import type { Json } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { readPage } from "../http/pages.ts";
import { json, noContent } from "../http/responses.ts";
import type { Route } from "../http/router.ts";

/** The long-term memory that all threads share. */
export const storeRoutes: Route<Call>[] = [
	{ method: "POST", path: "/store/namespaces", isRead: true, handle: listNamespaces },
	{ method: "POST", path: "/store/items/search", isRead: true, handle: searchItems },
	{ method: "GET", path: "/store/items", handle: showItem },
	{ method: "PUT", path: "/store/items", handle: putItem },
	{ method: "DELETE", path: "/store/items", handle: deleteItem },
];

async function listNamespaces(call: Call): Promise<Response> {
	const store = await storeFor(call);
	const fields = await call.fields();
	const prefix = fields.texts("prefix");
	const suffix = fields.texts("suffix");
	const maxDepth = fields.integer("max_depth", 1, 100);
	const namespaces = await store.listNamespaces({
		...(prefix !== undefined && { prefix: checkNamespace(prefix) }),
		...(suffix !== undefined && { suffix: checkNamespace(suffix) }),
		...(maxDepth !== undefined && { maxDepth }),
		...readPage(fields, 100),
	});
	return sendList(call, "namespaces", namespaces);
}

async function searchItems(call: Call): Promise<Response> {
	const store = await storeFor(call);
	const fields = await call.fields();
	const prefix = fields.texts("namespace_prefix") ?? [];
	const filter = fields.filter("filter");
	const query = fields.text("query");
	const items = await store.search(prefix.length === 0 ? prefix : checkNamespace(prefix), {
		...(filter !== undefined && { filter }),
		...(query !== undefined && { query }),
		...readPage(fields),
	});
	return sendList(call, "items", items.map(serializeItem));
}

function sendList(call: Call, name: string, items: readonly unknown[]): Response {
	const list = call.newList();
	for (const item of items) list.push(item);
	return list.respond({}, name);
}

async function showItem(call: Call): Promise<Response> {
	const store = await storeFor(call);
	const namespace = call.query.get("namespace")?.split(".") ?? [];
	const key = call.query.get("key");
	if (key === null) throw new HttpError(400, "`key` is required.");
	const item = await store.get(namespace, key);
	return json(item && serializeItem(item));
}

async function putItem(call: Call): Promise<Response> {
	const store = await storeFor(call);
	const fields = await call.fields();
	const value = fields.record("value");
	if (value === undefined) throw new HttpError(400, "`value` is required and must be an object.");
	const index = fields.get("index") === false ? false : fields.texts("index");
	await store.put(checkNamespace(fields.texts("namespace") ?? []), fields.mustText("key"), value, index);
	return noContent();
}

async function deleteItem(call: Call): Promise<Response> {
	const store = await storeFor(call);
	const fields = await call.fields();
	await store.delete(checkNamespace(fields.texts("namespace") ?? []), fields.mustText("key"));
	return noContent();
}

function storeFor({ access, studio }: Call): Promise<BaseStore> {
	access.checkAll();
	return studio.graphs.store();
}

function checkNamespace(namespace: string[]): string[] {
	if (namespace.length === 0) throw new HttpError(400, "Namespace is required");
	if (namespace.every((label) => label !== "" && !label.includes("."))) return namespace;
	throw new HttpError(422, `Namespace labels cannot be empty or contain periods. Received: ${namespace.join(".")}`);
}

function serializeItem({ createdAt, updatedAt, ...item }: Item): Json {
	return { ...item, created_at: createdAt, updated_at: updatedAt };
}

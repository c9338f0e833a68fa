const NEXT = "/node_modules/langgraph-next/";
const CURRENT = "/node_modules/@langchain/langgraph/";
const checkpoint = new URL("./checkpoint.mjs", import.meta.url).href;

/** @type {import("node:module").ResolveHook} */
export async function resolve(specifier, context, nextResolve) {
	const importer = context.parentURL ?? "";
	if (specifier === "@langchain/langgraph-checkpoint" && importer.includes(NEXT))
		return nextResolve(checkpoint, context);
	const resolved = await nextResolve(specifier, context);
	// Other packages go on with the LangGraph that they were installed with.
	const isReplaced = process.env.LANGGRAPH === "next" && !importer.includes("/node_modules/@langchain/");
	return isReplaced ? { ...resolved, url: resolved.url.replace(CURRENT, NEXT) } : resolved;
}

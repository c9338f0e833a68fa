import { Command, Send } from "@langchain/langgraph";
import { Fields, isRecord, type Json } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";

/** A command, as a client sends it. */
export function readCommand(value: Json): Command {
	const fields = new Fields(value);
	const goto = fields.get("goto");
	const update = fields.get("update");
	return new Command({
		...(goto !== undefined && { goto: (Array.isArray(goto) ? goto : [goto]).map(readTarget) }),
		...(update !== undefined && { update: update as Json }),
		...(fields.has("resume") && { resume: value.resume }),
	});
}

function readTarget(target: unknown): string | Send {
	if (typeof target === "string") return target;
	if (isRecord(target) && typeof target.node === "string") return new Send(target.node, target.input ?? null);
	throw new HttpError(400, "`goto` takes names of nodes, or objects with `node` and `input`.");
}

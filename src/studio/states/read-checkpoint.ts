import { Fields, type Json } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { isReserved } from "../threads/records.ts";

/**
 * The checkpoint that a request names, by `checkpoint` or by `checkpoint_id`, as keys for a config. The thread is not
 * among them: it stands in the path, and whoever may call for one thread must not reach another.
 */
export function readCheckpoint(fields: Fields): Json {
	const checkpoint = new Fields(fields.record("checkpoint"));
	const id = checkpoint.text("checkpoint_id") ?? fields.text("checkpoint_id");
	const ns = checkpoint.text("checkpoint_ns");
	const map = checkpoint.record("checkpoint_map");
	if (ns !== undefined && isReserved(ns)) throw new HttpError(400, "`checkpoint_ns` names no part of a graph.");
	return {
		...(id !== undefined && { checkpoint_id: id }),
		...(ns !== undefined && { checkpoint_ns: ns }),
		...(map !== undefined && { checkpoint_map: map }),
	};
}

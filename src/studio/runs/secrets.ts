import type { Json } from "../http/fields.ts";

/** How LangGraph itself tells which parts of a config must not be written down. */
const SECRET = /key|token|secret|password|auth/i;

/** A config's `configurable` without what must not be stored. */
export function withoutSecrets(configurable: Json): Json {
	return Object.fromEntries(Object.entries(configurable).filter(([name]) => !SECRET.test(name)));
}

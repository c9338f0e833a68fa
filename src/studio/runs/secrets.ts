import { isRecord, type Json } from "../http/fields.ts";

/**
 * Names that say so must not be written down. LangGraph itself leaves out key, token, secret, password and auth; the others
 * name the same things. The README lists them all.
 */
const SECRET = /key|token|secret|password|passwd|passphrase|pwd|credential|auth|bearer|jwt|cookie|session/i;

/** JSON without what must not be stored: all that has such a name, at any depth. */
export function withoutSecrets(json: Json): Json {
	return strip(json) as Json;
}

function strip(value: unknown): unknown {
	if (Array.isArray(value)) return value.map(strip);
	if (!isRecord(value)) return value;
	const open = Object.entries(value).filter(([name]) => !SECRET.test(name));
	return Object.fromEntries(open.map(([name, inner]) => [name, strip(inner)]));
}

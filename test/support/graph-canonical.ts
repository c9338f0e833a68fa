/**
 * A value turned into plain JSON-like data, so that two answers of two savers can be compared deeply whatever classes
 * are inside. Kinds that JSON can't tell apart get a tagged form; own keys are sorted.
 */
export type Canonical = null | boolean | number | string | Canonical[] | { [key: string]: Canonical };

/** One place where two canonical values differ. */
export interface ValueDifference {
	path: string;
	expected: Canonical | undefined;
	actual: Canonical | undefined;
}

interface Serialized {
	lc_serializable: boolean;
	toJSON(): unknown;
}

const tagged = (kind: string, value: Canonical): Canonical => ({ $kind: kind, value });

/** Turns any value into its canonical form. */
export function canonical(value: unknown, parents: object[] = []): Canonical {
	switch (typeof value) {
		case "string":
		case "boolean":
			return value;
		case "number":
			return Number.isFinite(value) && !Object.is(value, -0)
				? value
				: tagged("number", Object.is(value, -0) ? "-0" : `${value}`);
		case "bigint":
			return tagged("bigint", `${value}`);
		case "object":
			return value === null ? null : guarded(value, parents);
		default:
			return tagged(typeof value, "");
	}
}

/** Follows no reference back to an object that it is within. */
function guarded(value: object, parents: object[]): Canonical {
	if (parents.includes(value)) return tagged("cycle", parents.indexOf(value));
	parents.push(value);
	const result = canonicalObject(value, (child) => canonical(child, parents));
	parents.pop();
	return result;
}

function canonicalObject(value: object, inner: (child: unknown) => Canonical): Canonical {
	if (Array.isArray(value)) return Array.from(value, inner);
	if (value instanceof Date) return tagged("Date", `${value.getTime()}`);
	if (value instanceof RegExp) return tagged("RegExp", `${value}`);
	if (value instanceof Map) return tagged("Map", Array.from(value, inner));
	if (value instanceof Set) return tagged("Set", Array.from(value, inner));
	if (value instanceof Error) return tagged("Error", `${value.name}: ${value.message}`);
	if (ArrayBuffer.isView(value)) return tagged(value.constructor.name, bytesOf(value));
	if (value instanceof ArrayBuffer) return tagged("ArrayBuffer", bytesOf(new Uint8Array(value)));
	if (isConfig(value)) return canonicalConfig(value.configurable, inner);
	if (isSerializable(value)) return canonicalSerializable(value, inner);
	return canonicalFields(langGraphObject(value), inner);
}

const bytesOf = (view: ArrayBufferView) => Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString("hex");

/** `Send`, `Overwrite` and `Command` may come back as instances or as the plain data that core accepts in their place. */
function langGraphObject(value: object): object {
	const name = "lg_name" in value ? value.lg_name : undefined;
	if (name === "Send" && "node" in value && "args" in value) {
		const { node, args } = value;
		return "timeout" in value && value.timeout !== undefined ? { node, args, timeout: value.timeout } : { node, args };
	}
	if (name === "Overwrite" && "__overwrite__" in value) return { __overwrite__: value.__overwrite__ };
	if (name === "Command" && "toJSON" in value && typeof value.toJSON === "function") return value.toJSON();
	return value;
}

function canonicalFields(value: object, inner: (child: unknown) => Canonical): { [key: string]: Canonical } {
	const fields: { [key: string]: Canonical } = Object.create(null);
	for (const key of Object.keys(value).sort()) fields[key] = inner(value[key as keyof typeof value]);
	const name = Object.getPrototypeOf(value)?.constructor?.name;
	if (name !== undefined && name !== "Object") fields.$class = name;
	return fields;
}

function isSerializable(value: object): value is Serialized {
	return "lc_serializable" in value && value.lc_serializable === true && "toJSON" in value;
}

/** Both what the object holds and what it would be stored as again: `lc_kwargs` decides the latter. */
function canonicalSerializable(value: Serialized, inner: (child: unknown) => Canonical): Canonical {
	const { lc_kwargs: _, ...fields } = canonicalFields(value, inner);
	return { ...fields, $stored: inner(JSON.parse(JSON.stringify(value))) };
}

interface Config {
	configurable: Record<string, unknown>;
}

function isConfig(value: object): value is Config {
	const configurable = "configurable" in value ? value.configurable : undefined;
	return typeof configurable === "object" && configurable !== null && "thread_id" in configurable;
}

/**
 * The official MemorySaver echoes the caller's whole config when an explicit checkpoint was asked for. Only what
 * identifies a checkpoint is compared; that a saver does not echo is checked where its own tuples are inspected.
 */
function canonicalConfig(configurable: Record<string, unknown>, inner: (child: unknown) => Canonical): Canonical {
	const { thread_id, checkpoint_ns = "", checkpoint_id, checkpoint_map } = configurable;
	return { $config: inner({ thread_id, checkpoint_ns, checkpoint_id, checkpoint_map }) };
}

/** Lists where two canonical values differ; the paths are written as in JavaScript. */
export function differencesBetween(expected: Canonical, actual: Canonical, path = ""): ValueDifference[] {
	if (Object.is(expected, actual)) return [];
	if (!isTree(expected) || !isTree(actual) || Array.isArray(expected) !== Array.isArray(actual)) {
		return [{ path, expected, actual }];
	}
	const steps = new Set([...Object.keys(expected), ...Object.keys(actual)]);
	return [...steps].flatMap((step) => differencesAt(expected, actual, step, path));
}

function differencesAt(expected: Tree, actual: Tree, step: string, path: string): ValueDifference[] {
	const here = Array.isArray(expected) ? `${path}[${step}]` : path === "" ? step : `${path}.${step}`;
	const [left, right] = [child(expected, step), child(actual, step)];
	if (left === undefined || right === undefined) return [{ path: here, expected: left, actual: right }];
	return differencesBetween(left, right, here);
}

type Tree = Canonical[] | { [key: string]: Canonical };

const isTree = (value: Canonical): value is Tree => typeof value === "object" && value !== null;

const child = (tree: Tree, step: string): Canonical | undefined =>
	Array.isArray(tree) ? tree[Number(step)] : Object.hasOwn(tree, step) ? tree[step] : undefined;

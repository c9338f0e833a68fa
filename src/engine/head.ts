import { type Encoded, packPlain, unpackPlain } from "../codec/codec.ts";
import { CheckpointError } from "../errors.ts";

/** Where a value is: in a blob, or right here. */
export type Cell = number | Encoded;

/** How a checkpoint came to be, for the attribution of writes. */
export interface Origin {
	/** Names the run or state update that put it, where that is known. */
	readonly actor?: number | undefined;
	/** Whether an update took over tasks of its parent that had finished. */
	readonly absorbed?: boolean | undefined;
	/** The checkpoint that it is a copy of. */
	readonly copyOf?: string | undefined;
	/** The runs that put it again later. */
	readonly again?: readonly number[] | undefined;
	/** `versions_seen.__interrupt__` before that: the versions when the last run that was resumed began, commands included. */
	readonly resumedAt?: Head["versions"] | undefined;
	/** Its versions before that. */
	readonly firstVersions?: Head["versions"] | undefined;
}

/** All of a checkpoint but its identity. */
export interface Head {
	readonly v: number;
	readonly ts: string;
	readonly versions: Readonly<Record<string, string | number>>;
	readonly seen: Readonly<Record<string, Readonly<Record<string, string | number>>>>;
	readonly metadata: Encoded;
	/** `undefined` where no channel can be rebuilt from writes. */
	readonly origin: Origin | undefined;
	/** Channel to value, in the order of `channel_values`. A channel that is not here has no value. */
	readonly manifest: ReadonlyMap<string, Cell>;
}

/** What a checkpoint row holds: `[v, ts, versions, seen, metadata cell, origin, channel, cell, channel, cell...]`. */
export function packHead({ v, ts, versions, seen, metadata, origin, manifest }: Head): Uint8Array {
	const fields = [v, ts, versions, seen, packCell(metadata), origin ?? null];
	for (const [channel, cell] of manifest) fields.push(channel, packCell(cell));
	return packPlain(fields);
}

export function unpackHead(bytes: Uint8Array): Head {
	const [v, ts, versions, seen, metadata, made, ...rest] = unpackPlain(bytes);
	if (!isObject(versions) || !isObject(seen)) throw corrupt("lacks its versions");
	const manifest = new Map<string, Cell>();
	for (let i = 0; i < rest.length; i += 2) manifest.set(rest[i] as string, unpackCell(rest[i + 1]));
	return {
		v: v as number,
		ts: ts as string,
		versions: versions as Head["versions"],
		seen: seen as Head["seen"],
		metadata: unpackCell(metadata) as Encoded,
		origin: isObject(made) ? (made as Origin) : undefined,
		manifest,
	};
}

function isObject(value: unknown): boolean {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function corrupt(reason: string): CheckpointError {
	return new CheckpointError("CORRUPT", `A stored checkpoint ${reason}.`);
}

/** A number for a blob, bytes for a value of the built-in codec, a pair for one of a custom serializer. */
export function packCell(cell: Cell): unknown {
	if (typeof cell === "number") return cell;
	let { bytes } = cell;
	// A database may have given a Buffer, which the codec would tell from other bytes.
	if (bytes.constructor !== Uint8Array) bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
	return cell.type === undefined ? bytes : [cell.type, bytes];
}

export function unpackCell(packed: unknown): Cell {
	if (typeof packed === "number") return packed;
	if (packed instanceof Uint8Array) return { type: undefined, bytes: packed };
	if (Array.isArray(packed) && typeof packed[0] === "string" && packed[1] instanceof Uint8Array)
		return { type: packed[0], bytes: packed[1] };
	throw corrupt("names a value in a way that is not known");
}

/** The blobs that a manifest names. */
export function namedBlobs({ manifest }: Pick<Head, "manifest">): number[] {
	const ids: number[] = [];
	for (const cell of manifest.values()) if (typeof cell === "number") ids.push(cell);
	return ids;
}

type Versions = Record<string, string | number>;

/** Fresh objects, so that neither side can change the other's. */
export function copyVersions(from: {
	channel_versions?: Readonly<Versions>;
	versions_seen?: Readonly<Record<string, Readonly<Versions>>>;
}): { versions: Versions; seen: Record<string, Versions> } {
	const seen: Record<string, Versions> = {};
	const given = from.versions_seen ?? {};
	for (const node of Object.keys(given)) setOwn(seen, node, { ...given[node] });
	return { versions: { ...from.channel_versions }, seen };
}

/** Assigns a key that may be called `__proto__`. */
export function setOwn<T>(object: Record<string, T>, key: string, value: T): void {
	if (key === "__proto__")
		Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
	else object[key] = value;
}

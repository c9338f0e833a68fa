import type { Encoded } from "../codec/codec.ts";
import { Decoder } from "../codec/decoder.ts";
import { Encoder } from "../codec/encoder.ts";
import { CheckpointError } from "../errors.ts";
import { HeadWriter } from "./head-writer.ts";

/** Bytes up to this length are part of the object that holds them, so that a copy is quicker than another view of them. */
const SHORT_BYTES = 64;

/** Where a value is: in a blob, or right here. */
export type Cell = number | Encoded;

/** How a checkpoint came to be, for the attribution of writes. */
export interface Origin {
	/** Names the run or state update that put it, where that is known. */
	readonly actor: number | undefined;
	/** Whether an update took over tasks of its parent that had finished. */
	readonly absorbed: boolean;
	/** The checkpoint that it is a copy of. */
	readonly copyOf: string | undefined;
	/** The runs that put it again later. */
	readonly again: readonly number[];
	/** What it had in `versions_seen.__interrupt__` before that; see {@link PathCheckpoint}. */
	readonly resumedAt?: Readonly<Record<string, string | number>> | undefined;
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

const encoder = new Encoder();
const decoder = new Decoder();
const writer = new HeadWriter(encoder);

/** What a checkpoint row holds, see {@link HeadWriter}. */
export function packHead(head: Head): Uint8Array {
	return writer.write(head);
}

export function unpackHead(bytes: Uint8Array): Head {
	const [v, ts, versions, seen, metadata, made, ...rest] = unpackList(bytes);
	const manifest = new Map<string, Cell>();
	for (let i = 0; i < rest.length; i += 2) manifest.set(rest[i] as string, unpackCell(rest[i + 1]));
	return {
		v: v as number,
		ts: typeof ts === "number" ? new Date(ts).toISOString() : (ts as string),
		versions: versions as Head["versions"],
		seen: seen as Head["seen"],
		metadata: unpackCell(metadata) as Encoded,
		origin: Array.isArray(made) ? unpackOrigin(made) : undefined,
		manifest,
	};
}

function unpackOrigin([actor, absorbed, copyOf, resumedAt, ...again]: unknown[]): Origin {
	return {
		actor: actor as Origin["actor"],
		absorbed: absorbed === true,
		copyOf: typeof copyOf === "string" ? copyOf : undefined,
		again: again as number[],
		resumedAt: (resumedAt ?? undefined) as Origin["resumedAt"],
	};
}

/** A number for a blob, bytes for a value of the built-in codec, a pair for one of a custom serializer. */
export function packCell(cell: Cell): unknown {
	if (typeof cell === "number") return cell;
	// A database may have given a Buffer, and two channels the same bytes: the codec would tell both from others.
	const bytes = cell.bytes.length <= SHORT_BYTES ? new Uint8Array(cell.bytes) : viewOf(cell.bytes);
	return cell.type === undefined ? bytes : [cell.type, bytes];
}

function viewOf({ buffer, byteOffset, length }: Uint8Array): Uint8Array {
	return new Uint8Array(buffer, byteOffset, length);
}

export function unpackCell(packed: unknown): Cell {
	if (typeof packed === "number") return packed;
	if (packed instanceof Uint8Array) return { type: undefined, bytes: packed };
	if (Array.isArray(packed) && typeof packed[0] === "string" && packed[1] instanceof Uint8Array)
		return { type: packed[0], bytes: packed[1] };
	throw new CheckpointError("CORRUPT", "A stored checkpoint names a value in a way that is not known.");
}

export function packList(fields: readonly unknown[]): Uint8Array {
	return encoder.encode(fields);
}

export function unpackList(bytes: Uint8Array): unknown[] {
	const value = decoder.decode(bytes);
	if (!Array.isArray(value)) throw new CheckpointError("CORRUPT", "A stored row is not a list.");
	return value;
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

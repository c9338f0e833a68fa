import type { Encoded } from "../codec/codec.ts";
import { type Cell, corrupt, packFields, unpackFields } from "./cells.ts";

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

/** What a checkpoint row holds: `[v, ts, versions, seen, origin, channels]`, then the cells of metadata and channels. */
export function packHead({ v, ts, versions, seen, metadata, origin, manifest }: Head): Uint8Array {
	const fields = [v, ts, versions, seen, origin ?? null, [...manifest.keys()]];
	return packFields(fields, [metadata, ...manifest.values()]);
}

export function unpackHead(bytes: Uint8Array): Head {
	const { fields, cells } = unpackFields(bytes);
	const [v, ts, versions, seen, made, channels] = fields;
	const [metadata, ...values] = cells;
	if (!isObject(versions) || !isObject(seen)) throw corrupt("lacks its versions");
	if (typeof metadata !== "object" || !Array.isArray(channels) || channels.length !== values.length)
		throw corrupt("lacks values");
	return {
		// JSON has no `undefined`.
		v: (v ?? undefined) as number,
		ts: (ts ?? undefined) as string,
		versions: versions as Head["versions"],
		seen: seen as Head["seen"],
		metadata,
		origin: isObject(made) ? (made as Origin) : undefined,
		manifest: new Map(channels.map((channel: string, i) => [channel, values[i] as Cell])),
	};
}

function isObject(value: unknown): boolean {
	return typeof value === "object" && value !== null && !Array.isArray(value);
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
	const seen = { ...from.versions_seen };
	for (const node of Object.keys(seen)) seen[node] = { ...seen[node] };
	return { versions: { ...from.channel_versions }, seen };
}

/**
 * Stores a checkpoint and reads it back. Prints the milliseconds since the process was started.
 *
 * Usage: node first-checkpoint.mjs <package> [database file]
 */
import { now } from "./clock.ts";

const [name, path] = process.argv.slice(2) as [string, string | undefined];
const { MemorySaver, SqliteSaver } = await import(name);
const saver = path === undefined ? new MemorySaver() : SqliteSaver.fromConnString(path);

const versions = { messages: 2, topic: 2, attempts: 2 };
const checkpoint = {
	v: 4,
	id: "1f000000-0000-6000-8000-000000000001",
	ts: "2026-01-01T00:00:00.000Z",
	channel_values: { messages: ["Where is my parcel?"], topic: "delivery", attempts: 1 },
	channel_versions: versions,
	versions_seen: {},
};
const config = { configurable: { thread_id: "first", checkpoint_ns: "" } };
await saver.put(config, checkpoint, { source: "loop", step: 0, parents: {} }, versions);
const found = await saver.getTuple(config);
const elapsed = now();

if (found?.checkpoint.channel_values.topic !== "delivery") throw new Error("The checkpoint is not there.");
console.log(elapsed);

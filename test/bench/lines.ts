import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { root } from "./application.ts";

const SOURCES = join(root, "src");
/** All else is the core: what an application's calls can run through. */
const OUTER_ROOMS = ["cli", "contract", "studio"];
/** The entry files of these rooms; the other files at the top of `src` belong to the core. */
const OUTER_ENTRIES: Record<string, string> = {
	"cli.ts": "cli",
	"contract.ts": "contract",
	"langgraph-dev.ts": "studio",
	"studio.ts": "studio",
};
/** Rooms whose folders are rooms of their own. */
const SPLIT_ROOMS = ["engine", "storage"];

interface Size {
	files: number;
	lines: number;
}

function roomOf(file: string): string {
	const [first, second, third] = file.split(sep) as [string, string?, string?];
	if (second === undefined) return OUTER_ENTRIES[first] ?? "top";
	return SPLIT_ROOMS.includes(first) && third !== undefined ? `${first}/${second}` : first;
}

/** All lines of all TypeScript files, comments too, as a reader reads both. */
function measureRooms(): Map<string, Size> {
	const rooms = new Map<string, Size>();
	for (const file of readdirSync(SOURCES, { recursive: true, encoding: "utf8" })) {
		if (!file.endsWith(".ts")) continue;
		const room = rooms.get(roomOf(file)) ?? { files: 0, lines: 0 };
		room.files++;
		room.lines += readFileSync(join(SOURCES, file), "utf8").split("\n").length - 1;
		rooms.set(roomOf(file), room);
	}
	return rooms;
}

/** The methods that every backend has, and those that it may leave out. */
function countStorageMethods(): { methods: number; optional: number } {
	const file = readFileSync(join(SOURCES, "storage/storage.ts"), "utf8");
	const body = /^export interface Storage \{\n(.*?)^\}/ms.exec(file)?.[1];
	if (body === undefined) throw new Error("src/storage/storage.ts has no interface Storage.");
	// A method starts a line inside the interface; the lines of a longer signature are indented further.
	const names = [...body.matchAll(/^\t\w+(\??)\(/gm)];
	return { methods: names.length, optional: names.filter(([, mark]) => mark === "?").length };
}

/** Lines of each room of `src`, of the core, and the width of the storage interface. */
export function formatLines(): string {
	const rooms = [...measureRooms()].sort(([a], [b]) => (a < b ? -1 : 1));
	const isCore = ([name]: [string, Size]) => !OUTER_ROOMS.includes(name);
	const core = rooms.filter(isCore);
	const outer = rooms.filter((room) => !isCore(room));
	const sum = (chosen: typeof rooms, name: string): [string, Size] => {
		const add = (field: keyof Size) => chosen.reduce((total, [, size]) => total + size[field], 0);
		return [name, { files: add("files"), lines: add("lines") }];
	};
	const listed = [...core, sum(core, "core"), ...outer, sum(rooms, "all of src")];
	const { methods, optional } = countStorageMethods();
	return [
		...listed.map(([name, { files, lines }]) => `${name.padEnd(24)}${pad(files)} files${pad(lines)} lines`),
		`Storage interface: ${methods} methods, ${optional} of them optional`,
	].join("\n");
}

function pad(count: number): string {
	return count.toLocaleString("en").padStart(8);
}

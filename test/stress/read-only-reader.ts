import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import Database from "better-sqlite3";
import { SqliteSaver } from "../../src/sqlite.ts";

/** Reads a file, tries to write to it, and tries to open it for writing; prints what came of it. */
const [path = ""] = process.argv.slice(2);
const config = { configurable: { thread_id: "t" } };
const put = (saver: SqliteSaver) =>
	saver.put(config, emptyCheckpoint(), { source: "input", step: -1, parents: {} }, {});
const codeOf = (call: Promise<unknown>) =>
	call.then(
		() => "stored",
		(error) => error.code,
	);

// Whoever may do everything becomes somebody else, once all that is needed has been loaded.
new Database(":memory:").close();
if (process.getuid?.() === 0) {
	process.setegid?.(65534);
	process.seteuid?.(65534);
}

const saver = new SqliteSaver(path, { readOnly: true });
const read = (await saver.getTuple(config))?.checkpoint.channel_values.note;
const refused = await codeOf(put(saver));
await saver.close();
const writable = await codeOf(put(new SqliteSaver(path)));
console.log(JSON.stringify({ read, put: refused, writable }));

/** Serves the test graphs on an SQLite file, until it is killed. */
import { SqliteSaver } from "../../../src/sqlite.ts";
import { createStudioHandler, serveStudio } from "../../../src/studio.ts";
import { chat, nested, review, work } from "../project/graphs.ts";

const checkpointer = new SqliteSaver(process.argv[2] as string);
await serveStudio(createStudioHandler({ graphs: { chat, nested, review, work }, checkpointer }), { port: 0 });

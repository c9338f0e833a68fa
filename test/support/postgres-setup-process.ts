import { setTimeout } from "node:timers/promises";
import { PostgresSession } from "../../src/storage/postgres/session.ts";
import { PostgresStorage } from "../../src/storage/postgres/storage.ts";

/** Sets up a schema, as one of several servers that start in the same moment. */
const [url = "", schema = "", moment = "0"] = process.argv.slice(2);
const session = new PostgresSession(url, { retryTimeout: 20_000 });
const storage = new PostgresStorage(session, schema);
await setTimeout(Number(moment) - Date.now());
const first = await storage.reserveIds(100);
await storage.close();
console.log(first);

export { SqliteSaver, type SqliteSaverOptions } from "./saver/sqlite-saver.ts";
export type { EncryptionKey, EncryptionOptions } from "./storage/sealed/keyring.ts";
export type { SqliteDatabase } from "./storage/sqlite/driver.ts";

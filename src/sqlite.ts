export type { EncryptionKey, EncryptionOptions } from "./seal/keyring.ts";
export { SqliteSaver, type SqliteSaverOptions } from "./saver/sqlite-saver.ts";
export type { SqliteDatabase } from "./storage/sqlite-driver.ts";

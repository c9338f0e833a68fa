export { PostgresSaver, type PostgresSaverOptions } from "./saver/postgres-saver.ts";
export type { PostgresClient, PostgresPool, PostgresQuery } from "./storage/postgres/driver.ts";
export type { EncryptionKey, EncryptionOptions } from "./storage/sealed/keyring.ts";

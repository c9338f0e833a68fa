/**
 * The contract that every checkpoint saver of this package keeps, as tests for a saver of your own.
 *
 * @module
 */
export { runSaverContract } from "./contract/run.ts";
export { runStorageContract, type StorageContractOptions, type StorageSetup } from "./contract/storage-contract.ts";
export type { ContractSaver, SaverContractOptions, SaverSetup, SetupOptions, Skip, TestApi } from "./contract/types.ts";

import type { EncryptionOptions } from "../../src/storage/sealed/keyring.ts";
import { Sealer } from "../../src/storage/sealed/sealer.ts";
import { SealedStorage } from "../../src/storage/sealed/storage.ts";
import type { Storage } from "../../src/storage/storage.ts";
import type { HistoryBackend } from "./histories.ts";

/** Wraps a backend in envelopes: each time that it is opened, under the next of these options, to which all is rotated. */
export function sealed(setup: () => Promise<HistoryBackend>, options: readonly (EncryptionOptions | undefined)[]) {
	return async (): Promise<HistoryBackend> => {
		const { storage, reopen, teardown } = await setup();
		let opened = 0;
		const seal = async (storage: Storage) => {
			const encryption = options[Math.min(opened++, options.length - 1)];
			const sealed = new SealedStorage(storage, new Sealer({ encryption, compression: true }));
			if (encryption?.migrate) for await (const _ of sealed.rotate(async () => {}));
			return sealed;
		};
		const again = reopen && { reopen: async () => seal(await reopen()) };
		return { storage: await seal(storage), ...again, ...(teardown && { teardown }) };
	};
}

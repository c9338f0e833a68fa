import type { EncryptionOptions } from "../storage/sealed/keyring.ts";
import { Sealer } from "../storage/sealed/sealer.ts";
import { SealedStorage } from "../storage/sealed/storage.ts";
import type { Storage } from "../storage/storage.ts";
import { DeltaSaver, SAVER_OPTIONS, type SaverOptions } from "./delta-saver.ts";
import { checkOptions } from "./options.ts";

/** What every saver can be told that keeps checkpoints outside of its process. */
export interface SealedSaverOptions extends SaverOptions {
	/** Encrypts values, writes and metadata with AES-256-GCM. */
	encryption?: EncryptionOptions;
	/** Whether large values are compressed where it pays. Default true. */
	compression?: boolean;
}

export interface RotateOptions {
	/** Called after each thread. */
	onProgress?: (done: { threads: number; rows: number }) => void;
	/** Stops it after the batch that is under way. */
	signal?: AbortSignal | undefined;
}

/** The options of {@link SealedSaverOptions}. */
export const SEALED_OPTIONS = { ...SAVER_OPTIONS, encryption: "anything", compression: "true or false" } as const;
/** The two forms of `encryption`. */
const ONE_KEY = { key: "anything", migrate: "true or false" } as const;
const NAMED_KEYS = { keys: "anything", current: "anything", migrate: "true or false" } as const;

/** A saver whose rows are in envelopes: checked against damage, compressed, encrypted. */
export class SealedSaver extends DeltaSaver {
	private readonly _sealed: SealedStorage;

	constructor(storage: Storage, options: SealedSaverOptions) {
		const { encryption, compression = true } = options;
		if (encryption !== undefined)
			checkOptions("`encryption`", encryption, "key" in Object(encryption) ? ONE_KEY : NAMED_KEYS);
		const sealed = new SealedStorage(storage, new Sealer({ encryption, compression }));
		super(sealed, options);
		this._sealed = sealed;
	}

	/**
	 * Encrypts everything again that is not under the current key, or not encrypted at all (with `migrate`). Works in
	 * batches beside running graphs, and goes on where it was if it is stopped and called again.
	 *
	 * @returns how many rows were encrypted
	 */
	async rotateKeys(options: RotateOptions = {}): Promise<number> {
		checkOptions("rotateKeys", options, { onProgress: "anything", signal: "signal" });
		const done = { threads: 0, rows: 0 };
		await this.runLong(options.signal, async (pause) => {
			for await (const { rows } of this._sealed.rotate(pause)) {
				done.threads++;
				done.rows += rows;
				options.onProgress?.({ ...done });
			}
		});
		return done.rows;
	}
}

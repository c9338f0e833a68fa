import { CheckpointError, quote } from "../../errors.ts";
import { inspectWal } from "./wal.ts";

/** How often a log must look damaged, and the same each time: one that is being written to looks so for a moment. */
const SURE_AFTER = 5;

/** Refuses a database whose log has lost commits, before SQLite opens it and forgets about them. */
export class WalCheck {
	readonly #path: string;
	#suspect = "";
	#times = 0;

	constructor(path: string) {
		this.#path = path;
	}

	/** Throws as a busy database does while it is not sure. */
	check(): void {
		const { lost, version } = inspectWal(`${this.#path}-wal`);
		if (lost === 0) return;
		this.#times = version === this.#suspect ? this.#times + 1 : 1;
		this.#suspect = version;
		if (this.#times < SURE_AFTER)
			throw Object.assign(new Error("The log may be damaged, or is being written to"), { code: "SQLITE_BUSY" });
		throw new CheckpointError(
			"CORRUPT",
			`The write-ahead log of ${quote(this.#path)} is damaged, and at least ${lost} of its commits would be lost: call repair().`,
		);
	}
}

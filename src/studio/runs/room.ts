import { HttpError } from "../http/http-error.ts";
import type { Limits } from "../security/limits.ts";
import type { Run } from "./run.ts";

/** What a caller asks the server to do, from the moment it is accepted to its end. */
export interface Admission {
	readonly caller: string;
	readonly isDelayed: boolean;
	/** What its request holds. */
	readonly bytes: number;
	/** Undefined until it is made. */
	run?: Run;
}

/** How much callers have under way. Those that `authorize` tells apart do not take each other's room. */
export class Room {
	readonly #limits: Required<Limits>;
	readonly #admitted = new Set<Admission>();

	constructor(limits: Required<Limits>) {
		this.#limits = limits;
	}

	/** Accepts what a caller asks for, if there is room for it. It is to be left when it has ended. */
	enter(admission: Admission): void {
		const { waitingRuns, delayedRuns, activeRunBytes } = this.#limits;
		let waiting = 0;
		let bytes = 0;
		for (const other of this.#admitted) {
			if (other.caller !== admission.caller) continue;
			bytes += other.bytes;
			if (other.isDelayed === admission.isDelayed && (other.run?.status ?? "pending") === "pending") waiting++;
		}
		if (waiting >= (admission.isDelayed ? delayedRuns : waitingRuns)) refuse("Too many runs are waiting.");
		if (bytes > 0 && bytes + admission.bytes > activeRunBytes) refuse("Runs that have not ended take too much memory.");
		this.#admitted.add(admission);
	}

	leave(admission: Admission): void {
		this.#admitted.delete(admission);
	}
}

function refuse(reason: string): never {
	throw new HttpError(429, `${reason} Try again later.`, { "retry-after": "5" });
}

import { CheckpointError, quote } from "../../errors.ts";
import { checkNames } from "../../saver/options.ts";

/** How much one server takes on. */
export interface Limits {
	/** The largest request body, in bytes. Default 10 MiB. */
	bodyBytes?: number;
	/** The largest answer that is a list, in bytes; what would be larger is refused with status 422. Default 64 MiB. */
	answerBytes?: number;
	/** How many runs of a caller work at a time; further ones wait. Default 100. */
	concurrentRuns?: number;
	/** How many runs of a caller may wait for their turn; further ones are refused with status 429. Default 1,000. */
	waitingRuns?: number;
	/** How many runs of a caller may wait for their time, as `after_seconds` has it. Default 100. */
	delayedRuns?: number;
	/** The longest `after_seconds`. Default one day. */
	delaySeconds?: number;
	/**
	 * How much memory the requests of a caller's runs may take that have not ended, in bytes: up to 25 times as much as their
	 * JSON. Further runs are refused with status 429; one that alone takes more is let in alone. Default 256 MiB.
	 */
	activeRunBytes?: number;
	/** How much is held of runs that have ended, for a minute at most, in bytes. The oldest go first. Default 64 MiB. */
	endedRunBytes?: number;
	/** How long a run may take, in seconds: 24 days at most. Default one hour. */
	runSeconds?: number;
}

const DEFAULTS: Required<Limits> = {
	bodyBytes: 10 * 1024 * 1024,
	answerBytes: 64 * 1024 * 1024,
	concurrentRuns: 100,
	waitingRuns: 1000,
	delayedRuns: 100,
	delaySeconds: 86_400,
	activeRunBytes: 256 * 1024 * 1024,
	endedRunBytes: 64 * 1024 * 1024,
	runSeconds: 3600,
};

export function readLimits(limits: Limits = {}): Required<Limits> {
	checkNames("limits", limits, Object.keys(DEFAULTS));
	for (const [name, value] of Object.entries(limits))
		if (value !== undefined && !(typeof value === "number" && value > 0))
			throw new CheckpointError("INVALID_OPTION", `\`limits.${name}\` must be a number above 0, got ${quote(value)}.`);
	const given = Object.entries(limits).filter(([, value]) => value !== undefined);
	return { ...DEFAULTS, ...Object.fromEntries(given) };
}

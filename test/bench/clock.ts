/** Set for processes that are to count processor time. */
export const CLOCK_VARIABLE = "BENCH_CLOCK";

/**
 * Milliseconds since some moment: by the clock on the wall or, where other programs keep the machine busy, those in
 * which the processor worked for this process.
 */
export const now = process.env[CLOCK_VARIABLE] === "cpu" ? processorTime : () => performance.now();

function processorTime(): number {
	const { user, system } = process.cpuUsage();
	return (user + system) / 1000;
}

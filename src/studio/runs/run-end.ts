import type { Limits } from "../security/limits.ts";
import type { RunEnd } from "../threads/records.ts";
import type { Run } from "./run.ts";

/** How a run ended, from what it threw, if it did, and from why it was stopped. */
export function endOf(run: Run, failure: { error: unknown } | undefined, { runSeconds }: Required<Limits>): RunEnd {
	const updated_at = new Date().toISOString();
	if (failure === undefined) return { status: "success", updated_at };
	if (run.stopReason === "timeout") {
		const message = `The run took longer than ${runSeconds} seconds.`;
		return { status: "timeout", updated_at, error: { error: "TimeoutError", message } };
	}
	if (run.stopReason === "interrupt" || run.stopReason === "rollback")
		return { status: "interrupted", updated_at, cancel_reason: run.cancelReason };
	return { status: "error", updated_at, error: describeError(failure.error) };
}

/** Name and message of an error. Where it was thrown is nobody's business. */
export function describeError(error: unknown): { error: string; message: string } {
	try {
		if (error instanceof Error) return { error: String(error.name), message: String(error.message) };
		return { error: "Error", message: String(error) };
	} catch {
		// A node may throw anything, also what can't be made a string of.
		return { error: "Error", message: "Something was thrown that can't be described." };
	}
}

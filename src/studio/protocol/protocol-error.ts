import { CheckpointError } from "../../errors.ts";
import { HttpError } from "../http/http-error.ts";

/** Why a command was refused, in the words of the protocol. */
export type ProtocolErrorCode =
	| "invalid_argument"
	| "unknown_command"
	| "unknown_error"
	| "no_such_run"
	| "no_such_subscription"
	| "no_such_namespace"
	| "no_such_interrupt"
	| "no_such_checkpoint"
	| "permission_denied"
	| "not_supported";

/** Refuses a command. The message is sent to the client as it is. */
export class ProtocolError extends Error {
	override readonly name = "ProtocolError";
	readonly code: ProtocolErrorCode;

	constructor(code: ProtocolErrorCode, message: string) {
		super(message);
		this.code = code;
	}
}

/** An error of the other routes, for where there is no status. */
export function toProtocolError(error: unknown): ProtocolError {
	if (error instanceof ProtocolError) return error;
	if (error instanceof HttpError) {
		const code = error.status === 403 ? "permission_denied" : error.status < 429 ? "invalid_argument" : "unknown_error";
		return new ProtocolError(code, error.message);
	}
	if (error instanceof CheckpointError) return new ProtocolError("unknown_error", error.message);
	// The client gets to know nothing of it, so somebody else must.
	console.error(error);
	return new ProtocolError("unknown_error", "Internal Server Error");
}

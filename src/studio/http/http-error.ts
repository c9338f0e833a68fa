/** Refuses a request. The message is sent to the client as it is. */
export class HttpError extends Error {
	override readonly name = "HttpError";
	readonly status: number;
	readonly headers: Record<string, string>;

	constructor(status: number, message: string, headers: Record<string, string> = {}) {
		super(message);
		this.status = status;
		this.headers = headers;
	}
}

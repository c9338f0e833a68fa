import { readJson } from "./http/body.ts";
import { Fields } from "./http/fields.ts";
import type { Access } from "./security/access.ts";

/** One request, as its route sees it. */
export class Call {
	readonly request: Request;
	readonly params: Readonly<Record<string, string>>;
	readonly query: URLSearchParams;
	readonly access: Access;
	readonly #maxBytes: number;

	constructor(request: Request, params: Record<string, string>, access: Access, maxBytes: number) {
		this.request = request;
		this.params = params;
		this.query = new URL(request.url).searchParams;
		this.access = access;
		this.#maxBytes = maxBytes;
	}

	/** The thread that the path names, if the caller may access it. */
	get threadId(): string {
		const threadId = this.params.thread_id as string;
		this.access.check(threadId);
		return threadId;
	}

	/** The JSON that was sent. */
	body(): Promise<unknown> {
		return readJson(this.request, this.#maxBytes);
	}

	/** The object that was sent; an empty one if nothing was. */
	async fields(): Promise<Fields> {
		return new Fields(await this.body());
	}
}

import { readJson } from "./http/body.ts";
import { Fields } from "./http/fields.ts";
import { JsonList } from "./http/json-list.ts";
import type { Access } from "./security/access.ts";
import type { Studio } from "./studio.ts";

/** One request, as its route sees it. */
export class Call {
	readonly request: Request;
	readonly studio: Studio;
	readonly access: Access;
	readonly params: Readonly<Record<string, string>>;
	readonly query: URLSearchParams;

	constructor(request: Request, studio: Studio, access: Access, params: Record<string, string>) {
		this.request = request;
		this.studio = studio;
		this.access = access;
		this.params = params;
		this.query = new URL(request.url).searchParams;
	}

	/** What a segment of the path stands for. */
	param(name: string): string {
		return this.params[name] as string;
	}

	/** The thread that the path names, if the caller may access it. */
	get threadId(): string {
		const threadId = this.param("thread_id");
		this.access.check(threadId);
		return threadId;
	}

	/** A list to answer with. */
	newList(): JsonList {
		return new JsonList(this.studio.limits.answerBytes);
	}

	/** The JSON that was sent. */
	body(): Promise<unknown> {
		return readJson(this.request, this.studio.limits.bodyBytes);
	}

	/** The object that was sent; an empty one if nothing was. */
	async fields(): Promise<Fields> {
		return new Fields(await this.body());
	}
}

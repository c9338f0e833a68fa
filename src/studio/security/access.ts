import { v7 as uuid7 } from "@langchain/core/utils/uuid";
import { quote } from "../../errors.ts";
import { HttpError } from "../http/http-error.ts";

/** What a caller may do, as `authorize` says it. */
export interface ThreadAccess {
	/** Whether the caller may see and change this thread, be it there or not. */
	mayAccess: (threadId: string) => boolean;
	/**
	 * The id of a thread that the caller makes without naming one, or copies. Default: a new UUID, which is of use only
	 * if `mayAccess` knows it.
	 */
	newThreadId?: () => string;
	/** Who calls. Limits of runs are counted for each caller; those without a name are one. */
	caller?: string;
}

/** Returns true (everything), false (nothing), or which threads the caller may access. */
export type Authorize = (request: Request) => boolean | ThreadAccess | Promise<boolean | ThreadAccess>;

/** What the caller of one request may do. */
export class Access {
	readonly #threads: ThreadAccess | undefined;

	constructor(threads?: ThreadAccess) {
		this.#threads = threads;
	}

	static async of(request: Request, authorize: Authorize | undefined): Promise<Access> {
		if (authorize === undefined) return new Access();
		const answer = await authorize(request);
		if (answer === true) return new Access();
		if (typeof answer === "object" && typeof answer?.mayAccess === "function") return new Access(answer);
		throw new HttpError(403, "Not authorized.");
	}

	/** A name that limits are counted by. */
	get caller(): string {
		return this.#threads?.caller ?? "";
	}

	mayAccess(threadId: string): boolean {
		return this.#threads === undefined || this.#threads.mayAccess(threadId) === true;
	}

	/** The answer does not depend on whether the thread is there, so that nobody learns which ones others have. */
	check(threadId: string): void {
		if (!this.mayAccess(threadId)) throw new HttpError(403, `Not authorized for thread ${quote(threadId)}.`);
	}

	/** Whether the caller may access all threads. */
	get isFull(): boolean {
		return this.#threads === undefined;
	}

	/** What is stored for no thread in particular is for those who may see all of them. */
	checkAll(): void {
		if (!this.isFull) throw new HttpError(403, "Not authorized.");
	}

	newThreadId(): string {
		const threadId = this.#threads?.newThreadId === undefined ? uuid7() : this.#threads.newThreadId();
		if (typeof threadId !== "string")
			throw new TypeError(`\`newThreadId\`, which \`authorize\` gave, must return a string, got ${quote(threadId)}.`);
		this.check(threadId);
		return threadId;
	}
}

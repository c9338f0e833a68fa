import type { BaseMessage } from "@langchain/core/messages";
import { useStream } from "@langchain/react";
import { useState } from "react";
import { backends } from "../support/backends.ts";
import { renderHook } from "../support/browser.ts";
import { startServer } from "../support/server.ts";
import { transports, webSocketFactory } from "../support/web-socket.ts";

type Chat = { messages: BaseMessage[] };
type Review = { topic: string; draft?: string; verdict?: string };

const cases = backends.flatMap((backend) =>
	transports.map((transport) => ({ backend, name: backend.name, transport })),
);

describe.each(cases)("The hook useStream of @langchain/react over $transport on a $name", ({ backend, transport }) => {
	it("submits, edits a message and goes back to the other branch", async () => {
		const { url, client } = await startServer(backend);
		const page = await renderHook(() => {
			const [threadId, onThreadId] = useState<string | null>(null);
			const options = { apiUrl: url, assistantId: "chat", transport, webSocketFactory };
			return useStream<Chat>({ ...options, threadId, onThreadId });
		});
		const texts = () => page.current.messages.map(({ text }) => text);
		const submit = (content: string, options?: object) =>
			page.act(() => page.current.submit({ messages: [{ type: "human", content }] } as never, options));
		const settled = (...expected: string[]) =>
			page.until((stream) => !stream.isLoading && texts().join() === expected.join());

		await submit("one");
		await settled("one", "1: one");
		const threadId = page.current.threadId as string;
		const before = await client.threads.getState(threadId);
		await submit("two");
		await settled("one", "1: one", "two", "3: two");
		const after = await client.threads.getState(threadId);

		await submit("two, edited", { forkFrom: before.checkpoint.checkpoint_id });
		await settled("one", "1: one", "two, edited", "3: two, edited");
		await submit("three", { forkFrom: after.checkpoint.checkpoint_id });
		await settled("one", "1: one", "two", "3: two", "three", "5: three");

		const history = await client.threads.getHistory<Chat>(threadId, { limit: 100 });
		const ends = history.filter(({ next }) => next.length === 0).map(({ values }) => values.messages.at(-1)?.content);
		expect(JSON.stringify(ends)).toMatch(/5: three.*3: two, edited.*3: two.*1: one/);
		await page.unmount();
		expect(await client.threads.search()).toMatchObject([{ status: "idle" }]);
	});

	it("shows an interrupt, is opened anew and resumes", async () => {
		const { url, restart } = await startServer(backend);
		const open = (known: string | null, apiUrl: string) =>
			renderHook(() => {
				const [threadId, onThreadId] = useState(known);
				const options = { apiUrl, assistantId: "review", transport, webSocketFactory };
				return useStream<Review, { question: string }>({ ...options, threadId, onThreadId });
			});
		const first = await open(null, url);
		await first.act(() => first.current.submit({ topic: "hooks" }));
		await first.until((stream) => !stream.isLoading && stream.interrupt !== undefined);
		expect(first.current.interrupt?.value).toEqual({ question: 'Publish "On hooks."?' });
		const threadId = first.current.threadId;
		await first.unmount();

		// As after a restart: nothing is known but what is stored.
		const second = await open(threadId, (await restart()).url);
		await second.until((stream) => stream.interrupt !== undefined && stream.getThread()?.interrupts.length === 1);
		expect(second.current.values).toMatchObject({ draft: "On hooks." });
		await second.act(() => second.current.respond("yes"));
		await second.until((stream) => !stream.isLoading && stream.values.verdict !== undefined);
		expect(second.current.values).toMatchObject({ topic: "hooks", verdict: "yes", draft: "On hooks. (yes)" });
		expect(second.current.interrupt).toBeUndefined();
		await second.unmount();
	});

	it("shows what went wrong", async () => {
		const { url } = await startServer(backend);
		const page = await renderHook(() => {
			const options = { apiUrl: url, assistantId: "work", transport, webSocketFactory };
			return useStream<{ name: string; fail: string; log: string[] }>(options);
		});
		await page.act(() => page.current.submit({ name: "one", fail: "broken" }).catch(() => {}));
		await page.until((stream) => !stream.isLoading && stream.error !== undefined && stream.values.log !== undefined);
		expect(String(page.current.error)).toMatch("broken");
		await page.unmount();
	});
});

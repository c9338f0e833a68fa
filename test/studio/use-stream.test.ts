import type { BaseMessage } from "@langchain/core/messages";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useState } from "react";
import { backends } from "./support/backends.ts";
import { renderHook } from "./support/browser.ts";
import { startServer } from "./support/server.ts";

type Chat = { messages: BaseMessage[] };
type Review = { topic: string; draft?: string; verdict?: string };

describe.each(backends)("The hook useStream on a $name", (backend) => {
	it("submits, edits a message and switches between the branches", async () => {
		const { url, client } = await startServer(backend);
		const page = await renderHook(() => {
			const [threadId, onThreadId] = useState<string | null>(null);
			return useStream<Chat>({ apiUrl: url, assistantId: "chat", threadId, onThreadId, fetchStateHistory: true });
		});
		const texts = () => page.current.messages.map((message) => message.content);
		const submit = (content: string, options?: object) =>
			page.act(() => page.current.submit({ messages: [{ type: "human", content }] } as never, options));
		const settled = (count: number) =>
			page.until((stream) => !stream.isLoading && stream.history.length > 0 && stream.messages.length === count);

		await submit("one");
		await settled(2);
		expect(texts()).toEqual(["one", "1: one"]);
		await submit("two");
		await settled(4);
		expect(texts()).toEqual(["one", "1: one", "two", "3: two"]);

		const second = page.current.getMessagesMetadata(page.current.messages[2]!);
		await submit("two, edited", { checkpoint: second?.firstSeenState?.parent_checkpoint });
		await page.until((stream) => !stream.isLoading && texts()[3] === "3: two, edited" && stream.history.length > 6);
		expect(texts()).toEqual(["one", "1: one", "two, edited", "3: two, edited"]);

		const edited = page.current.getMessagesMetadata(page.current.messages[2]!);
		expect(edited?.branchOptions).toHaveLength(2);
		const other = edited!.branchOptions!.find((branch) => branch !== edited!.branch)!;
		await page.act(() => page.current.setBranch(other));
		expect(texts()).toEqual(["one", "1: one", "two", "3: two"]);
		await page.act(() => page.current.setBranch(edited!.branch!));
		expect(texts()).toEqual(["one", "1: one", "two, edited", "3: two, edited"]);
		await page.unmount();
		expect(await client.threads.search()).toMatchObject([{ status: "idle" }]);
	});

	it("shows an interrupt and resumes", async () => {
		const { url } = await startServer(backend);
		const page = await renderHook(() => {
			const [threadId, onThreadId] = useState<string | null>(null);
			return useStream<Review, { InterruptType: { question: string } }>({
				apiUrl: url,
				assistantId: "review",
				threadId,
				onThreadId,
				fetchStateHistory: true,
			});
		});
		await page.act(() => page.current.submit({ topic: "hooks" }));
		await page.until((stream) => !stream.isLoading && stream.interrupt !== undefined);
		expect(page.current.interrupt?.value).toEqual({ question: 'Publish "On hooks."?' });
		await page.act(() => page.current.submit(undefined, { command: { resume: "yes" } }));
		await page.until((stream) => !stream.isLoading && stream.values.verdict !== undefined);
		expect(page.current.values).toEqual({ topic: "hooks", verdict: "yes", draft: "On hooks. (yes)" });
		expect(page.current.interrupt).toBeUndefined();
		await page.unmount();
	});
});

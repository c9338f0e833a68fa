import { JSDOM } from "jsdom";
import type { ReactNode } from "react";

const { window } = new JSDOM("<!doctype html>", {
	url: "http://localhost:3000/",
	pretendToBeVisual: true,
});
// React looks for these when it is loaded. Requests are Node's: they reach a real server.
const globals = { window, document: window.document, navigator: window.navigator, IS_REACT_ACT_ENVIRONMENT: true };
for (const [name, value] of Object.entries(globals)) vi.stubGlobal(name, value);

const { act, createElement } = await import("react");
const { createRoot } = await import("react-dom/client");

/** Shows nothing and calls a hook. */
function Caller({ useHook }: { useHook: () => void }): ReactNode {
	useHook();
	return null;
}

/** A page that calls a hook. */
export interface HookView<T> {
	/** What the hook returned last. */
	readonly current: T;
	/** Calls something that changes it. */
	act(change: () => unknown): Promise<void>;
	/** Waits until the page has become what it should. */
	until(isThere: (current: T) => boolean): Promise<void>;
	unmount(): Promise<void>;
}

/** Calls a hook as a page does. */
export async function renderHook<T>(useHook: () => T): Promise<HookView<T>> {
	let current: T;
	const keep = () => {
		current = useHook();
	};
	const page = createRoot(window.document.createElement("div"));
	await act(async () => page.render(createElement(Caller, { useHook: keep })));
	return {
		get current() {
			return current;
		},
		act: (change) => act(async () => void (await change())),
		until: async (isThere) => {
			while (!isThere(current)) await act(() => new Promise((resolve) => setTimeout(resolve, 10)));
		},
		unmount: () => act(async () => page.unmount()),
	};
}

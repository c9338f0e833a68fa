import { JSDOM } from "jsdom";

export type Transport = "sse" | "websocket";
/** How clients of the thread protocol get events. */
export const transports: Transport[] = ["sse", "websocket"];

const { window } = new JSDOM("", { url: "http://localhost:3000/" });

/** A browser's, for a page on this machine. Node.js 20 has none. */
export const webSocketFactory = (url: string) => new window.WebSocket(url) as unknown as WebSocket;

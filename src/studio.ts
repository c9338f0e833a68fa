export type { Graph, GraphFactory } from "./studio/graphs/graph.ts";
export { createStudioHandler, type StudioHandler } from "./studio/handler.ts";
export type { StudioOptions } from "./studio/options.ts";
export type { ProtocolSession, ProtocolSocket } from "./studio/protocol/session.ts";
export type { Authorize, ThreadAccess } from "./studio/security/access.ts";
export type { Limits } from "./studio/security/limits.ts";
export {
	type ServeOptions,
	type StudioServer,
	serveStudio,
	toNodeListener,
	toUpgradeListener,
} from "./studio/serve.ts";

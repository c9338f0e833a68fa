export { useSaverInDev } from "./studio/dev-bridge.ts";

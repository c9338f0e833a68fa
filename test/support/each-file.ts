import { afterAll } from "vitest";
import { cleanUps } from "./clean-ups.ts";

// Vitest runs this for each file.
afterAll(async () => {
	for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

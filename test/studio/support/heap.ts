import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose_gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** What the heap holds once everything that can go is gone. */
export async function heapUsed(): Promise<number> {
	for (let n = 0; n < 3; n++) {
		await new Promise((resolve) => setTimeout(resolve, 20));
		collectGarbage();
	}
	return process.memoryUsage().heapUsed;
}

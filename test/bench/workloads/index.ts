import type { Workload } from "../workload.ts";
import { agent } from "./agent.ts";
import { chats } from "./chat.ts";
import { cold } from "./cold.ts";
import { coldCalls } from "./cold-calls.ts";
import { coldImport } from "./cold-import.ts";
import { copying } from "./copy.ts";
import { deltas } from "./delta.ts";
import { fanOut } from "./fan-out.ts";
import { files } from "./files.ts";
import { filter } from "./filter.ts";
import { forks } from "./forks.ts";
import { growth } from "./growth.ts";
import { held } from "./held.ts";
import { nested } from "./nested.ts";
import { open } from "./open.ts";
import { processes } from "./processes.ts";
import { small } from "./small.ts";
import { threads } from "./threads.ts";

/** Everything that is measured, in the order of the tables. */
export const workloads: readonly Workload[] = [
	...chats,
	files,
	nested,
	small,
	...deltas,
	agent,
	fanOut,
	threads,
	processes,
	cold,
	...coldCalls,
	coldImport,
	copying,
	filter,
	forks,
	...open,
	held,
	growth,
];

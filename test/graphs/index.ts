import type { Scenario } from "../support/graph-scenario.ts";
import agents from "./agents.ts";
import branches from "./branches.ts";
import channels from "./channels.ts";
import commands from "./commands.ts";
import deltas from "./deltas.ts";
import entrypoints from "./entrypoints.ts";
import errors from "./errors.ts";
import forks from "./forks.ts";
import histories from "./histories.ts";
import interrupts from "./interrupts.ts";
import messages from "./messages.ts";
import reducers from "./reducers.ts";
import sends from "./sends.ts";
import streams from "./streams.ts";
import subgraphs from "./subgraphs.ts";
import threads from "./threads.ts";
import updates from "./updates.ts";
import values from "./values.ts";
import walks from "./walks.ts";

/** All stories, by what they are about. */
export const stories: Record<string, readonly Scenario[]> = {
	agents,
	branches,
	channels,
	commands,
	deltas,
	entrypoints,
	errors,
	forks,
	histories,
	interrupts,
	messages,
	reducers,
	sends,
	streams,
	subgraphs,
	threads,
	updates,
	values,
	walks,
};

import type { Command } from "@langchain/langgraph";
import { readCommand } from "../graphs/command.ts";
import { Fields, isRecord, type Json, MOST_ITEMS } from "../http/fields.ts";
import { HttpError } from "../http/http-error.ts";
import { measure } from "../http/measure.ts";
import { readCheckpoint } from "../states/read-checkpoint.ts";

const STREAM_MODES = [
	"values",
	"messages",
	"messages-tuple",
	"updates",
	"events",
	"tasks",
	"checkpoints",
	"debug",
	"custom",
	"tools",
] as const;
export type StreamMode = (typeof STREAM_MODES)[number];

const STRATEGIES = ["reject", "rollback", "interrupt", "enqueue"] as const;
export type MultitaskStrategy = (typeof STRATEGIES)[number];

const MOST_SECONDS = 2_000_000;

/** Credentials are for the server, not for graphs. */
const PRIVATE_HEADERS = ["x-api-key", "x-tenant-id", "x-service-key"];

/** What a client asks to run. */
export interface RunRequest {
	readonly assistantId: string;
	readonly input: unknown;
	readonly command: Command | undefined;
	readonly metadata: Json;
	readonly context: unknown;
	/** Tags, recursion limit and configurable. */
	readonly config: Json;
	/** Headers that are meant for the graph. */
	readonly headers: Json;
	/** The checkpoint to start from; the newest if it is empty. */
	readonly checkpoint: Json;
	readonly streamModes: readonly StreamMode[];
	readonly withSubgraphs: boolean;
	readonly isResumable: boolean;
	readonly interruptBefore: "*" | string[] | undefined;
	readonly interruptAfter: "*" | string[] | undefined;
	readonly strategy: MultitaskStrategy;
	readonly cancelOnDisconnect: boolean;
	readonly keepsThread: boolean;
	readonly createsThread: boolean;
	readonly delayMs: number;
	/** Whether an answer that nothing waits for is refused. LangGraph 1.7 and later know of it. */
	readonly isStrict: boolean;
	readonly durability: "sync" | "async" | "exit" | undefined;
	/** What the API tells of it later. */
	readonly kwargs: Json;
	/** About how much memory all this takes. */
	readonly bytes: number;
}

export function readRunRequest(body: unknown, headers: Headers): RunRequest {
	const fields = new Fields(body);
	if (fields.get("webhook") !== undefined) throw new HttpError(422, "This server calls no webhooks.");
	const command = fields.record("command");
	const config = readConfig(fields.record("config") ?? {});
	const streamModes = readStreamModes(fields.get("stream_mode"));
	const withSubgraphs = fields.flag("stream_subgraphs") ?? false;
	const isResumable = fields.flag("stream_resumable") ?? false;
	const interruptBefore = readNodes(fields, "interrupt_before");
	const interruptAfter = readNodes(fields, "interrupt_after");
	const checkpoint = readCheckpoint(fields);
	return {
		assistantId: fields.mustText("assistant_id"),
		input: fields.get("input"),
		command: command && readCommand(command),
		metadata: fields.record("metadata") ?? {},
		context: fields.get("context"),
		config,
		headers: readHeaders(headers),
		checkpoint,
		streamModes,
		withSubgraphs,
		isResumable,
		interruptBefore,
		interruptAfter,
		strategy: fields.choice("multitask_strategy", STRATEGIES) ?? "reject",
		cancelOnDisconnect: fields.choice("on_disconnect", ["cancel", "continue"]) === "cancel",
		keepsThread: fields.choice("on_completion", ["delete", "keep"]) === "keep",
		createsThread: fields.choice("if_not_exists", ["reject", "create"]) === "create",
		delayMs: readDelay(fields),
		isStrict: fields.flag("strict_resume") ?? false,
		durability: readDurability(fields),
		kwargs: {
			input: fields.get("input"),
			command,
			config,
			context: fields.get("context") ?? {},
			stream_mode: streamModes,
			interrupt_before: interruptBefore,
			interrupt_after: interruptAfter,
			subgraphs: withSubgraphs,
			resumable: isResumable,
		},
		bytes: measure(body).bytes,
	};
}

/** The thread, the checkpoint and LangGraph's own keys are not a client's to set here. */
export function readConfig(config: Json): Json {
	const configurable = new Fields(config).record("configurable") ?? {};
	const given = Object.entries(configurable).filter(
		([key]) => !key.startsWith("__") && !/^(thread_id|thread_ts|run_id|checkpoint_.*)$/.test(key),
	);
	return { ...config, configurable: Object.fromEntries(given) };
}

function readHeaders(headers: Headers): Json {
	const meant = [...headers].filter(([name]) => name.startsWith("x-") && !PRIVATE_HEADERS.includes(name));
	return Object.fromEntries(meant);
}

function readStreamModes(value: unknown): StreamMode[] {
	const modes = value === undefined ? [] : Array.isArray(value) ? value : [value];
	const wrong = modes.find((mode) => !STREAM_MODES.includes(mode));
	if (wrong !== undefined) throw new HttpError(400, `\`stream_mode\` must be of ${STREAM_MODES.join(", ")}.`);
	return modes.length === 0 ? ["values"] : modes;
}

function readNodes(fields: Fields, name: string): "*" | string[] | undefined {
	return fields.get(name) === "*" ? "*" : fields.texts(name);
}

/** In milliseconds. A timer can't wait for more than 24 days. */
function readDelay(fields: Fields): number {
	const seconds = fields.number("after_seconds") ?? 0;
	if (seconds >= 0 && seconds <= MOST_SECONDS) return seconds * 1000;
	throw new HttpError(400, `\`after_seconds\` must be from 0 to ${MOST_SECONDS}, got ${seconds}.`);
}

function readDurability(fields: Fields): RunRequest["durability"] {
	const durability = fields.choice("durability", ["sync", "async", "exit"]);
	return durability ?? (fields.flag("checkpoint_during") === false ? "exit" : undefined);
}

/** Several runs at once. */
export function readRunRequests(body: unknown, headers: Headers): RunRequest[] {
	if (!Array.isArray(body) || body.length === 0 || body.length > MOST_ITEMS || !body.every(isRecord))
		throw new HttpError(400, `The request body must be an array of 1 to ${MOST_ITEMS} runs.`);
	return body.map((run) => readRunRequest(run, headers));
}

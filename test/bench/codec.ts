/**
 * Encoding and decoding against LangGraph's own serializer, and against msgpackr, which knows no classes and is given
 * what the messages hold as plain objects.
 *
 * Usage: [BENCH_CLOCK=cpu] tsx test/bench/codec.ts [rounds]
 */
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver as OfficialMemorySaver } from "@langchain/langgraph-checkpoint";
import { Packr } from "msgpackr";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { now } from "./clock.ts";

const rounds = Number(process.argv[2] ?? 15);
const official = new OfficialMemorySaver().serde;
const packr = new Packr({ useRecords: false, structuredClone: true });
const codec = new DeltaCodec();

/** What is measured of one contestant: milliseconds of each round, and the size of what it makes. */
interface Contestant {
	readonly name: string;
	/** Whether it is told apart from `name` only by what it has seen before. */
	encode(value: unknown): unknown | Promise<unknown>;
	decode(encoded: never): unknown | Promise<unknown>;
	sizeOf(encoded: never): number;
	/** What it is given for a value. */
	adapt?(value: unknown): unknown;
}

const contestants: readonly Contestant[] = [
	{
		name: "ours",
		encode: (value) => codec.encode(value),
		decode: (encoded: { type: undefined; bytes: Uint8Array }) => codec.decode(encoded),
		sizeOf: ({ bytes }: { bytes: Uint8Array }) => bytes.length,
	},
	{
		name: "official",
		encode: (value) => official.dumpsTyped(value),
		decode: ([type, data]: [string, Uint8Array]) => official.loadsTyped(type, data),
		sizeOf: ([, data]: [string, Uint8Array]) => data.length,
	},
	{
		name: "msgpackr",
		encode: (value) => packr.pack(value),
		decode: (bytes: Uint8Array) => packr.unpack(bytes),
		sizeOf: (bytes: Uint8Array) => bytes.length,
		adapt: (value) =>
			Array.isArray(value) ? value.map((message: BaseMessage) => ({ ...message, lc_kwargs: undefined })) : value,
	},
];

function makeMessages(): BaseMessage[] {
	return Array.from({ length: 500 }, (_, n) => [
		new HumanMessage({ id: `h${n}`, content: `Question ${n}: what about the weather in city ${n % 40}? `.repeat(2) }),
		new AIMessage({
			id: `a${n}`,
			content: "",
			tool_calls: [{ id: `c${n}`, name: "weather", args: { city: `city ${n % 40}`, days: 3 }, type: "tool_call" }],
			response_metadata: { model_name: "model-1", finish_reason: "tool_calls" },
			usage_metadata: { input_tokens: 100 + n, output_tokens: 20, total_tokens: 120 + n },
		}),
		new ToolMessage({
			id: `t${n}`,
			content: `Sunny, ${n % 30} degrees. `.repeat(6),
			tool_call_id: `c${n}`,
			name: "weather",
		}),
		new AIMessage({
			id: `b${n}`,
			content: `It will be ${n % 30} degrees and sunny. `.repeat(8),
			response_metadata: { model_name: "model-1", finish_reason: "stop" },
			usage_metadata: { input_tokens: 150 + n, output_tokens: 60, total_tokens: 210 + n },
		}),
	]).flat();
}

function makeNested(): unknown {
	const leaf = (n: number) => ({
		id: n,
		name: `item ${n}`,
		tags: ["red", "green", `tag ${n % 17}`],
		price: n * 1.25,
		active: n % 3 === 0,
		note: n % 5 === 0 ? null : `A note on item ${n}, with an é in it.`,
		position: { x: n % 100, y: -n, deep: { level: 3, path: ["a", "b", { c: n }] } },
	});
	return {
		groups: Object.fromEntries(
			Array.from({ length: 60 }, (_, g) => [
				`group ${g}`,
				{ title: `Group ${g}`, items: Array.from({ length: 75 }, (_, i) => leaf(g * 75 + i)) },
			]),
		),
	};
}

type Times = Map<string, number[]>;

async function time(times: Times, name: string, work: () => unknown): Promise<unknown> {
	const start = now();
	const result = await work();
	times.set(name, [...(times.get(name) ?? []), now() - start]);
	return result;
}

/** One round of every contestant after the other, so that whatever else the machine does hits them alike. */
async function runRound(make: () => unknown, times: Times, sizes: Map<string, number>): Promise<void> {
	for (const { name, encode, decode, sizeOf, adapt } of contestants) {
		const value = adapt?.(make()) ?? make();
		const encoded = (await time(times, `${name} encode, first time`, () => encode(value))) as never;
		await encode(value);
		await time(times, `${name} encode, again`, () => encode(value));
		await time(times, `${name} decode`, () => decode(encoded));
		sizes.set(name, sizeOf(encoded));
	}
}

function median(values: readonly number[] = []): number {
	return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

async function compare(title: string, make: () => unknown, needed: Record<string, number>): Promise<void> {
	const [times, sizes] = [new Map<string, number[]>(), new Map<string, number>()];
	for (let i = 0; i < 3; i++) await runRound(make, new Map(), sizes);
	for (let i = 0; i < rounds; i++) await runRound(make, times, sizes);
	console.log(`\n${title}, medians of ${rounds} rounds`);
	const table: Record<string, Record<string, string>> = {};
	for (const step of ["encode, first time", "encode, again", "decode"]) {
		const [ours, theirs, packed] = contestants.map(({ name }) => median(times.get(`${name} ${step}`))) as number[];
		table[step] = {
			"ours, ms": ours!.toFixed(2),
			"official, ms": theirs!.toFixed(2),
			"msgpackr, ms": packed!.toFixed(2),
			"times the official's speed": (theirs! / ours!).toFixed(1),
			"times msgpackr's speed": (packed! / ours!).toFixed(2),
			needed: `≥ ${needed[step]}`,
		};
	}
	console.table(table);
	const [ours, theirs, packed] = contestants.map(({ name }) => sizes.get(name) ?? Number.NaN) as number[];
	console.log(
		`size: ours ${ours}, official ${theirs}, msgpackr ${packed}: ${(ours! / theirs!).toFixed(2)} of the official's (needed ≤ 0.8)`,
	);
}

await compare("2,000 messages", makeMessages, { "encode, first time": 3, "encode, again": 3, decode: 20 });
await compare("a nested object of 1 MB", makeNested, { "encode, first time": 1, "encode, again": 1, decode: 1 });

import { median } from "./measure.ts";
import type { Sample } from "./runner.ts";
import type { Backend, MeasureInfo, Side, Workload } from "./workload.ts";

/** One measure of one workload on one backend. Times in milliseconds, sizes in bytes; all are medians of the rounds. */
export interface Row {
	readonly workload: string;
	readonly measure: string;
	readonly title: string;
	readonly backend: Backend;
	readonly ours: number;
	readonly official: number;
	/** Official ÷ ours: how many times smaller or faster ours is. */
	readonly ratio: number;
	readonly target: number;
	/** The bytes that ours may take more; the target is then the ratio at which it takes just that. */
	readonly allowance?: number | undefined;
}

/** How many times what is necessary ours takes. */
export interface LimitRow {
	readonly workload: string;
	readonly title: string;
	readonly backend: Backend;
	readonly ours: number;
	readonly limit: number;
	readonly factor: number;
}

/** Ours at one length of a chat, beside what it was at the shortest. */
export interface GrowthRow {
	readonly backend: Backend;
	readonly messages: number;
	readonly bytesPerMessage: number;
	readonly put: number;
	readonly bytesGrowth: number;
	readonly putGrowth: number;
}

export interface Report {
	readonly rows: Row[];
	readonly limits: LimitRow[];
	readonly growth: GrowthRow[];
	/** Sentences about what has no official counterpart. */
	readonly notes: string[];
}

const BACKENDS: readonly Backend[] = ["sqlite", "memory", "postgres"];
const BACKEND_TITLES: Record<Backend, string> = { sqlite: "SQLite", memory: "memory", postgres: "PostgreSQL" };
/** What a saver keeps in memory of recent states unless told otherwise. */
const CACHE_BYTES = 32 * 1024 * 1024;

/** The medians of all rounds. */
class Medians {
	readonly #samples: readonly Sample[];

	constructor(samples: readonly Sample[]) {
		this.#samples = samples;
	}

	get(workload: string, side: Side, backend: Backend, measure: string): number | undefined {
		const values = [...this.#byRound(workload, side, backend, measure).values()];
		return values.length === 0 ? undefined : median(values);
	}

	/** Official ÷ ours. Both sides of a round ran at the same time, and are compared before rounds are. */
	ratio(workload: string, backend: Backend, measure: string): number {
		const official = this.#byRound(workload, "official", backend, measure);
		const ours = this.#byRound(workload, "ours", backend, measure);
		return median([...ours].map(([round, value]) => (official.get(round) as number) / value));
	}

	#byRound(workload: string, side: Side, backend: Backend, measure: string): Map<number, number> {
		const values = new Map<number, number>();
		for (const sample of this.#samples) {
			const value = sample.measures[measure];
			const isIt = sample.workload === workload && sample.side === side && sample.backend === backend;
			if (isIt && value !== undefined) values.set(sample.round, value);
		}
		return values;
	}
}

export function makeReport(workloads: readonly Workload[], samples: readonly Sample[]): Report {
	const medians = new Medians(samples);
	return {
		rows: workloads.flatMap((workload) => compare(workload, medians)),
		limits: workloads.flatMap((workload) => compareWithLimit(workload, medians)),
		growth: BACKENDS.flatMap((backend) => compareLengths(backend, medians)),
		notes: BACKENDS.flatMap((backend) => [...noteCopy(backend, medians), ...noteHeld(backend, medians)]),
	};
}

function eachMeasure<T>(
	workload: Workload,
	visit: (backend: Backend, name: string, info: MeasureInfo) => T | undefined,
): T[] {
	return Object.entries(workload.measures)
		.flatMap(([name, info]) => workload.backends.map((backend) => visit(backend, name, info)))
		.filter((row) => row !== undefined);
}

function compare(workload: Workload, medians: Medians): Row[] {
	return eachMeasure(workload, (backend, measure, { title, target, only, allowance }) => {
		if (only !== undefined && backend !== only) return undefined;
		const ours = medians.get(workload.name, "ours", backend, measure);
		const official = medians.get(workload.name, "official", backend, measure);
		if (ours === undefined || official === undefined) return undefined;
		const ratio = medians.ratio(workload.name, backend, measure);
		const least = allowance === undefined ? (target?.[backend] ?? 1) : official / (official + allowance);
		return { workload: workload.name, measure, title, backend, ours, official, ratio, target: least, allowance };
	});
}

function compareWithLimit(workload: Workload, medians: Medians): LimitRow[] {
	return eachMeasure(workload, (backend, measure, { title }) => {
		const ours = medians.get(workload.name, "ours", backend, measure);
		const limit = medians.get(workload.name, "limit", backend, measure);
		if (ours === undefined || limit === undefined) return undefined;
		return { workload: workload.name, title, backend, ours, limit, factor: ours / limit };
	});
}

function compareLengths(backend: Backend, medians: Medians): GrowthRow[] {
	const rows: GrowthRow[] = [];
	for (const messages of [250, 1000, 4000]) {
		const bytes = medians.get(`chat-${messages}`, "ours", backend, "bytes");
		const put = medians.get(`chat-${messages}`, "ours", backend, "put");
		if (bytes === undefined || put === undefined) continue;
		const bytesPerMessage = bytes / messages;
		const first = rows[0] ?? { bytesPerMessage, put };
		const bytesGrowth = bytesPerMessage / first.bytesPerMessage;
		rows.push({ backend, messages, bytesPerMessage, put, bytesGrowth, putGrowth: put / first.put });
	}
	return rows;
}

function noteCopy(backend: Backend, medians: Medians): string[] {
	const get = (measure: string) => medians.get("copy", "ours", backend, measure);
	const [copy, byHand, source, added] = [get("copy"), get("copyByHand"), get("bytesSource"), get("bytesCopy")];
	if (copy === undefined || byHand === undefined || source === undefined || added === undefined) return [];
	const faster = formatFactor(byHand / copy);
	const share = Math.round((added / source) * 1000) / 10;
	return [
		`${BACKEND_TITLES[backend]}: copyThread is ${faster} as fast as list and put on the same saver, and adds ${share}% of the source's bytes (target at most 40%).`,
	];
}

function noteHeld(backend: Backend, medians: Medians): string[] {
	const bytes = medians.get("held", "ours", backend, "bytesHeld");
	if (backend === "memory" || bytes === undefined) return [];
	const share = Math.round((bytes / CACHE_BYTES) * 100);
	return [
		`${BACKEND_TITLES[backend]}: with 10,000 threads the saver holds ${share}% of its cache's limit of 32 MiB (target 100% at the most).`,
	];
}

/** The tables, in Markdown. */
export function formatReport(workloads: readonly Workload[], report: Report): string {
	const parts = [
		`Times smaller or faster than the official saver (official ÷ ours):\n\n${formatRows(workloads, report.rows)}`,
	];
	const missed = report.rows.filter(({ ratio, target }) => ratio < target);
	if (missed.length > 0) parts.push(`Below target: ${missed.map(formatMiss).join("; ")}.`);
	if (report.limits.length > 0)
		parts.push(
			`Ours as a multiple of the necessary minimum (raw commits of the new content, one msgpack pass over the state):\n\n${formatLimits(workloads, report.limits)}`,
		);
	if (report.growth.length > 2) parts.push(`Growth of a chat, beside the shortest:\n\n${formatGrowth(report.growth)}`);
	if (report.notes.length > 0) parts.push(report.notes.map((note) => `- ${note}`).join("\n"));
	return `${parts.join("\n\n")}\n`;
}

/** Those that something was measured on. */
function backendsOf(rows: readonly { backend: Backend }[]): Backend[] {
	return BACKENDS.filter((backend) => rows.some((row) => row.backend === backend));
}

function formatRows(workloads: readonly Workload[], rows: readonly Row[]): string {
	const backends = backendsOf(rows);
	const lines = workloads.flatMap(({ name, title, measures }) =>
		Object.entries(measures).map(([measure, info]) => {
			const cells = backends.flatMap((backend) => {
				const row = rows.find((row) => row.workload === name && row.measure === measure && row.backend === backend);
				return row === undefined ? ["–", ""] : [formatRatio(row), formatTarget(row)];
			});
			return [`${title}: ${info.title}`, ...cells];
		}),
	);
	const known = lines.filter((cells) => cells.slice(1).some((cell) => cell !== "–" && cell !== ""));
	const heads = backends.flatMap((backend) => [BACKEND_TITLES[backend], "target"]);
	return formatTable(["workload", ...heads], known);
}

function formatRatio(row: Row): string {
	return row.ratio < row.target ? `**${formatValue(row)}**` : formatValue(row);
}

/** The ratio; where bytes are allowed, the difference as well. */
function formatValue({ ratio, ours, official, allowance }: Row): string {
	if (allowance === undefined) return formatFactor(ratio);
	const difference = ours - official;
	return `${formatFactor(ratio)} (${difference < 0 ? "−" : "+"}${formatMegabytes(Math.abs(difference))})`;
}

function formatTarget({ target, allowance }: Row): string {
	return allowance === undefined ? `≥ ${target}×` : `≤ +${formatMegabytes(allowance)}`;
}

function formatMiss(row: Row): string {
	const { workload, title, backend } = row;
	return `${workload}, ${title}, ${BACKEND_TITLES[backend]} ${formatValue(row)} (target ${formatTarget(row)})`;
}

function formatMegabytes(bytes: number): string {
	return `${Math.round(bytes / 1e5) / 10} MB`;
}

function formatLimits(workloads: readonly Workload[], limits: readonly LimitRow[]): string {
	const backends = backendsOf(limits);
	const lines = workloads.flatMap(({ name, title, measures }) =>
		Object.values(measures).map((info) => {
			const cells = backends.map((backend) => {
				const row = limits.find((row) => row.workload === name && row.title === info.title && row.backend === backend);
				return row === undefined ? "–" : formatFactor(row.factor);
			});
			return [`${title}: ${info.title}`, ...cells];
		}),
	);
	const known = lines.filter((cells) => cells.slice(1).some((cell) => cell !== "–"));
	return formatTable(["workload", ...backends.map((backend) => BACKEND_TITLES[backend])], known);
}

function formatGrowth(growth: readonly GrowthRow[]): string {
	const lines = growth.map(({ backend, messages, bytesGrowth, putGrowth }) => [
		`${BACKEND_TITLES[backend]}, ${messages.toLocaleString("en")} messages`,
		formatFactor(bytesGrowth),
		formatFactor(putGrowth),
	]);
	return formatTable(["", "bytes per message", "put + putWrites"], lines);
}

function formatFactor(factor: number): string {
	const digits = factor >= 100 ? 0 : factor >= 10 ? 1 : 2;
	return `${factor.toFixed(digits)}×`;
}

function formatTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
	const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
	return [line(head), `|---${"|---:".repeat(head.length - 1)}|`, ...lines.map(line)].join("\n");
}

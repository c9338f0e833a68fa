import type { Sample } from "./runner.ts";

interface Point {
	readonly x: number;
	readonly y: number;
}

interface Curve {
	/** As the style sheet calls it: whose saver, and which. */
	readonly kind: string;
	readonly points: readonly Point[];
}

interface Panel {
	readonly title: string;
	readonly measure: string;
	readonly format: (value: number) => string;
}

const PANELS: readonly Panel[] = [
	{ title: "Size", measure: "bytes", format: formatBytes },
	{ title: "Time per step", measure: "put", format: formatTime },
	{ title: "Time to read the newest state", measure: "get", format: formatTime },
];

const LEGEND = [
	{ kind: "official sqlite", text: "official SqliteSaver" },
	{ kind: "official memory", text: "official MemorySaver" },
	{ kind: "ours sqlite", text: "SqliteSaver" },
	{ kind: "ours memory", text: "MemorySaver" },
];

const PLOT = { width: 236, height: 210, top: 84 };
/** Room for the labels of the vertical axis. */
const LABELS = 62;
const GAP = 22;
const WIDTH = PANELS.length * (LABELS + PLOT.width + GAP);
const HEIGHT = PLOT.top + PLOT.height + 52;

/** Both colour schemes: a picture in a README is shown on a light or a dark page. */
const STYLE = `
	text { font: 12px system-ui, sans-serif; fill: #57606a }
	.title { font-weight: 600; font-size: 13px; fill: #1f2328 }
	.grid { stroke: #d0d7de; stroke-width: 1 }
	.curve { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round }
	.ours { stroke: #0969da }
	.official { stroke: #bc4c00 }
	.memory { stroke-dasharray: 2 5 }
	@media (prefers-color-scheme: dark) {
		text { fill: #9198a1 }
		.title { fill: #f0f6fc }
		.grid { stroke: #3d444d }
		.ours { stroke: #58a6ff }
		.official { stroke: #f0883e }
	}
`;

/** A picture of how size, step time and read time grow with a thread, from the samples of the growth workload. */
export function drawGrowth(samples: readonly Sample[]): string {
	const grown = samples.filter(({ workload }) => workload === "growth");
	if (grown.length === 0) throw new Error("The plot needs the workload called growth.");
	const panels = PANELS.map((panel, i) => drawPanel(panel, curvesOf(grown, panel.measure), i));
	const title =
		"Size, step time and read time of a chat over its length, on this package's savers and the official ones";
	return [
		`<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}">`,
		`<title>${title}</title>`,
		`<style>${STYLE}</style>`,
		...LEGEND.map(drawLegend),
		...panels,
		"</svg>\n",
	].join("\n");
}

/** Measures are called `bytes 250`: the measure and the length. */
function curvesOf(samples: readonly Sample[], measure: string): Curve[] {
	return samples.map(({ side, backend, measures }) => {
		const points = Object.entries(measures)
			.map(([name, y]) => ({ name: name.split(" "), y }))
			.filter(({ name }) => name[0] === measure)
			.map(({ name, y }) => ({ x: Number(name[1]), y }));
		return { kind: `${side} ${backend}`, points };
	});
}

function drawLegend({ kind, text }: (typeof LEGEND)[number], i: number): string {
	const x = LABELS + i * 190;
	return `<path class="curve ${kind}" d="M${x} 20h28"/><text x="${x + 36}" y="24">${text}</text>`;
}

function drawPanel({ title, format }: Panel, curves: readonly Curve[], index: number): string {
	const left = index * (LABELS + PLOT.width + GAP) + LABELS;
	const bottom = PLOT.top + PLOT.height;
	const all = curves.flatMap(({ points }) => points);
	const longest = Math.max(...all.map(({ x }) => x));
	// Whole powers of ten: what grows by the square and what grows in proportion are a thousand times apart.
	const low = Math.floor(Math.log10(Math.min(...all.map(({ y }) => y))));
	const high = Math.ceil(Math.log10(Math.max(...all.map(({ y }) => y))));
	const toX = (x: number) => round(left + (x / longest) * PLOT.width);
	const toY = (y: number) => round(bottom - ((Math.log10(y) - low) / (high - low)) * PLOT.height);

	const powers = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
	const lengths = [0, longest / 2, longest];
	return [
		`<text class="title" x="${left}" y="${PLOT.top - 20}">${title}</text>`,
		...powers.flatMap((y) => [
			`<path class="grid" d="M${left} ${toY(y)}h${PLOT.width}"/>`,
			`<text x="${left - 8}" y="${toY(y) + 4}" text-anchor="end">${format(y)}</text>`,
		]),
		...lengths.map(
			(x) => `<text x="${toX(x)}" y="${bottom + 20}" text-anchor="middle">${x.toLocaleString("en")}</text>`,
		),
		`<text x="${left + PLOT.width / 2}" y="${bottom + 40}" text-anchor="middle">messages in the thread</text>`,
		...curves.map(({ kind, points }) => {
			const path = points.map(({ x, y }) => `${toX(x)} ${toY(y)}`).join("L");
			return `<path class="curve ${kind}" d="M${path}"/>`;
		}),
	].join("\n");
}

function round(value: number): number {
	return Math.round(value * 10) / 10;
}

function formatBytes(bytes: number): string {
	const [unit, size] = bytes >= 1e9 ? ["GB", 1e9] : bytes >= 1e6 ? ["MB", 1e6] : bytes >= 1e3 ? ["kB", 1e3] : ["B", 1];
	return `${round(bytes / size)} ${unit}`;
}

function formatTime(ms: number): string {
	if (ms >= 1000) return `${round(ms / 1000)} s`;
	return ms >= 1 ? `${round(ms)} ms` : `${round(ms * 1000)} µs`;
}

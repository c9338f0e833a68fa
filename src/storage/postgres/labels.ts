import type { Labels } from "../storage.ts";
import { toText } from "./text.ts";

/** What stands in the column of labels where they were not told; nothing stands there if there are none. */
export const UNKNOWN_LABELS = "null";

/** Labels by the columns that they stand in. */
export interface LabelColumns {
	readonly source: string | undefined;
	readonly step: number | undefined;
	/** All others, as JSON. */
	readonly rest: string | undefined;
}

/** Two of them, which LangGraph gives every checkpoint, have columns of their own. */
export function splitLabels({ source, step, ...others }: Labels): LabelColumns {
	const isSource = typeof source === "string";
	const isStep = Number.isSafeInteger(step);
	const rest = Object.entries({
		...others,
		...(source !== undefined && !isSource && { source }),
		...(step !== undefined && !isStep && { step }),
	});
	return {
		source: isSource ? toText(source) : undefined,
		step: isStep ? (step as number) : undefined,
		rest: rest.length === 0 ? undefined : JSON.stringify(Object.fromEntries(rest.map(escapeLabel))),
	};
}

/** JSON in a database can't have U+0000 either. */
function escapeLabel([key, value]: [string, Labels[string]]): [string, Labels[string]] {
	return [toText(key), typeof value === "string" ? toText(value) : value];
}

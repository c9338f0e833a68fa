import { Annotation } from "@langchain/langgraph";

/** The state most scenarios use: a list that grows, a last value, and an object that is merged. */
export const LogState = Annotation.Root({
	log: Annotation<string[]>({ reducer: (log, more) => log.concat(more), default: () => [] }),
	last: Annotation<string>({ reducer: (_, last) => last, default: () => "" }),
	facts: Annotation<Record<string, unknown>>({
		reducer: (facts, more) => ({ ...facts, ...more }),
		default: () => ({}),
	}),
});

/** A node that logs its words, remembers them as the last ones, and counts how much was logged before. */
export const say = (words: string) => (state: typeof LogState.State) => ({
	log: [words],
	last: words,
	facts: { [words]: state.log.length },
});

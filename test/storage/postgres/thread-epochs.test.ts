import { ThreadEpochs } from "../../../src/storage/postgres/thread-epochs.ts";

const state = { stamp: 1, checkpoints: 3, writes: 5, batch: 90 };

describe("ThreadEpochs", () => {
	it("gives a thread the same number until it is found in another state", () => {
		const epochs = new ThreadEpochs();
		const first = epochs.see("a", state);
		expect(epochs.see("a", { ...state })).toBe(first);
		expect(epochs.see("b", state)).not.toBe(first);
		for (const change of [{ stamp: 2 }, { checkpoints: 4 }, { writes: 6 }, { batch: 91 }]) {
			const before = epochs.see("a", state);
			expect(epochs.see("a", { ...state, ...change })).not.toBe(before);
		}
	});

	it("knows what this process has added, and nothing else", () => {
		const epochs = new ThreadEpochs();
		const first = epochs.see("a", state);
		epochs.add("a", { checkpoints: 1, writes: 0, batch: 100 });
		epochs.add("a", { checkpoints: 0, writes: 2, batch: 101 });
		expect(epochs.see("a", { stamp: 1, checkpoints: 4, writes: 7, batch: 101 })).toBe(first);
		epochs.add("a", { checkpoints: 0, writes: 1, batch: 102 });
		expect(epochs.see("a", { stamp: 1, checkpoints: 4, writes: 9, batch: 102 })).not.toBe(first);
	});

	it("forgets a thread of which it can't be told what was changed", () => {
		const epochs = new ThreadEpochs();
		const first = epochs.see("a", state);
		epochs.forget("a");
		expect(epochs.see("a", state)).not.toBe(first);
	});
});

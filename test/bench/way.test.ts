import { runNode, typescript } from "../support/run-node.ts";

function way(...args: string[]): Promise<string> {
	return runNode([...typescript, "test/bench/way.ts", ...args]);
}

describe("The way of a call", () => {
	it("is listed by file and function, with totals", async () => {
		const output = await way();

		expect(output).toMatch(/^put on SQLite\n {2}src\/\S+\.ts\n +\d+× {2}\S.*, line \d+$/m);
		expect(output, "the saver itself is on every way").toContain("src/saver/delta-saver.ts");
		expect(output, "helpers of compilers and of V8 are not in the sources").not.toMatch(/× {2}(<|__)/);
		for (const title of ["put on SQLite", "getTuple on SQLite", "put on memory", "getTuple on memory"])
			expect(output).toMatch(new RegExp(`^${title}: [1-9]\\d* files, [1-9]\\d* functions$`, "m"));
	});

	it("comes with the lines of each room, and the width of the storage interface", async () => {
		const output = await way("--lines");
		for (const room of ["codec", "engine", "storage/sqlite", "core", "studio", "all of src"])
			expect(output).toMatch(new RegExp(`^${room} +\\d+ files +[\\d,]+ lines$`, "m"));
		expect(output).toMatch(/^Storage interface: \d+ methods, \d+ of them optional$/m);
	});
});

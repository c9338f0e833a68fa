import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take longest, longest first: one that is begun last would run on while the other cores have nothing to do. */
const LONG = [
	"graphs/delta-forks",
	"storage/postgres/suites",
	"graphs/graphs",
	"studio/bounds",
	"storage/postgres/faults",
	"bench/bench",
	"studio/protocol/official-server",
	"graphs/postgres-graphs",
	"storage/sealed/encryption",
	"storage/contract",
	"package/examples",
	"studio/load",
	"graphs/delta-stories",
	"package/package",
	"saver/contract",
];

export class LongestFirst extends BaseSequencer {
	override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
		const place = ({ moduleId }: TestSpecification) => {
			const found = LONG.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
			return found === -1 ? LONG.length : found;
		};
		return (await super.sort(files)).sort((a, b) => place(a) - place(b));
	}
}

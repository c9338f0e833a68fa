import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take longest, longest first: one that is begun last would run on while the other cores have nothing to do. */
const LONG = [
	"graphs/graphs",
	"storage/postgres/suites",
	"graphs/delta-forks",
	"package/examples",
	"graphs/postgres-graphs",
	"saver/contract",
	"storage/sealed/encryption-suites",
	"storage/sealed/encryption",
	"stress/crash",
	"studio/load",
	"bench/bench",
	"package/package",
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

import type { TestApi } from "../../src/contract.ts";
import { core } from "./core.ts";

/** `npm run test:all` tests everything on everything. */
export const isAll = process.env.TEST_ALL === "1";

/**
 * What `npm test` takes of a list whose every member is tested in another place too, such as on another backend: every nth,
 * each core others.
 *
 * @param offset where several places share a list: each takes others
 */
export function share<T>(list: readonly T[], every: number, offset = 0): readonly T[] {
	const first = (offset + (core === "1.7" ? 1 : 0)) % every;
	return isAll ? list : list.filter((_, at) => at % every === first);
}

/** The same for the tests that a contract registers. */
export function shareOfTests(test: TestApi, every: number): TestApi {
	let count = 0;
	const it = (name: string, body: () => Promise<void>) => (isAll || count++ % every === 0) && test.it(name, body);
	return { describe: test.describe, it: Object.assign(it, { skip: test.it.skip }) };
}

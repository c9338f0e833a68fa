import assert from "node:assert/strict";
import type { RuleTest } from "./rule-test.ts";

/** Branches of one thread repeat version numbers; nothing of one branch shows in another. */
export function forkRules(test: RuleTest): void {
	test("CH-9: two branches with the same versions keep their own values", async ({ thread }) => {
		const root = await thread().put({ values: { draft: "none" }, versions: { draft: 1 } });
		const versions = { draft: 2 };
		const one = await thread().put({ parent: root, values: { draft: "draft one" }, versions });
		const two = await thread().put({ parent: root, values: { draft: "draft two" }, versions });
		const carried = { versions: { draft: 2, final: 3 }, newVersions: { final: 3 } };
		const oneDone = await thread().put({ parent: one, values: { draft: "draft one", final: 1 }, ...carried });
		const twoDone = await thread().put({ parent: two, values: { draft: "draft two", final: 2 }, ...carried });
		assert.deepEqual(await thread().values(one), { draft: "draft one" });
		assert.deepEqual(await thread().values(two), { draft: "draft two" });
		assert.deepEqual(await thread().values(oneDone), { draft: "draft one", final: 1 });
		assert.deepEqual(await thread().values(twoDone), { draft: "draft two", final: 2 });
	});

	test("CH-9: a branch whose channel is empty does not empty the same version elsewhere", async ({ thread }) => {
		const root = await thread().put({ values: { "branch:to:step": null }, versions: { "branch:to:step": 2 } });
		const versions = { "branch:to:step": 3 };
		const ran = await thread().put({ parent: root, values: {}, versions });
		const fork = await thread().put({ parent: root, values: { "branch:to:step": null }, versions, source: "update" });
		assert.deepEqual(await thread().values(ran), {});
		assert.deepEqual(await thread().values(fork), { "branch:to:step": null });
	});

	test("CH-9: two runs at once on one thread do not mix", async ({ thread }) => {
		const root = await thread().put({ values: { messages: ["hi"] }, versions: { messages: 1 } });
		const run = async (name: string) => {
			const ids = [root];
			const messages = ["hi"];
			for (let n = 2; n < 10; n++) {
				messages.push(`${name} says ${n} at some length, so that this is stored as a change`);
				const draft = { values: { messages: [...messages], who: name }, versions: { messages: n, who: n } };
				ids.push(await thread().put({ parent: ids.at(-1), ...draft }));
			}
			return { name, ids: ids.slice(1), messages };
		};
		for (const { name, ids, messages } of await Promise.all([run("one"), run("two"), run("three")]))
			for (const [n, id] of ids.entries())
				assert.deepEqual(await thread().values(id), { messages: messages.slice(0, n + 2), who: name });
	});

	for (const depth of [0, 1, 7, 40, 98]) {
		test(`CH-9: a fork at depth ${depth} of 100 reads its own history`, async ({ thread }) => {
			const message = (branch: string, n: number) => ({
				id: `${branch}-${n}`,
				text: `message ${n} of ${branch} `.repeat(5),
			});
			const trunk = Array.from({ length: 100 }, (_, n) => message("trunk", n));
			const ids = await thread().chain(100, (n) => ({ values: { messages: trunk.slice(0, n + 1), step: n } }));
			const fork = trunk.slice(0, depth + 1);
			const forkIds: string[] = [];
			for (let n = depth + 1; n < depth + 21; n++) {
				fork.push(message("fork", n));
				const versions = { messages: n + 1, step: n + 1 };
				const parent = forkIds.at(-1) ?? ids[depth];
				forkIds.push(await thread().put({ parent, values: { messages: [...fork], step: n }, versions }));
			}
			for (const [n, id] of forkIds.entries()) {
				const step = depth + 1 + n;
				assert.deepEqual(await thread().values(id), { messages: fork.slice(0, step + 1), step });
			}
			for (const n of [0, depth, depth + 1, 99])
				assert.deepEqual(await thread().values(ids[n]), { messages: trunk.slice(0, n + 1), step: n });
		});
	}

	test("CH-9: forks of forks keep apart", async ({ thread }) => {
		const expected = new Map<string, string[]>();
		const grow = async (parent: string | undefined, path: string[]): Promise<void> => {
			if (path.length > 4) return;
			for (const branch of ["left", "right", "middle"].slice(0, path.length === 0 ? 1 : 3)) {
				const messages = [...path, `${branch} `.repeat(30)];
				const versions = { messages: messages.length };
				const id = await thread().put({ parent, values: { messages }, versions });
				expected.set(id, messages);
				await grow(id, messages);
			}
		};
		await grow(undefined, []);
		for (const [id, messages] of expected) assert.deepEqual(await thread().values(id), { messages });
	});
}

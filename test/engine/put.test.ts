import { type DeltaSaver, MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { LONG, path, scratchFolderForEach, thread } from "../support/scratch-file.ts";

scratchFolderForEach();

const encryption = { key: new Uint8Array(32).fill(6) };
const SAVERS: Record<string, () => DeltaSaver> = {
	MemorySaver: () => new MemorySaver(),
	"MemorySaver without a cache": () => new MemorySaver({ cacheBytes: 0 }),
	SqliteSaver: () => new SqliteSaver(path),
	"SqliteSaver with encryption": () => new SqliteSaver(path, { encryption }),
};

/** How a checkpoint that is there can be put once more. */
const AGAIN: [string, (id: string, parent: string) => { parent?: string }][] = [
	["as its own parent", (id) => ({ parent: id })],
	["without a parent", () => ({})],
	["with its parent", (_, parent) => ({ parent })],
];

describe.each(Object.entries(SAVERS))("a checkpoint that is put again, by %s,", (_, open) => {
	it.each(AGAIN)("%s keeps its parent and its writes", async (_, link) => {
		const saver = open();
		const main = thread(saver);
		const [root, parent, id, child] = (await main.chain(4, (n) => ({ values: { n, text: `${n} ${LONG}` } }))) as [
			string,
			string,
			string,
			string,
		];
		await main.write(id, [["n", "pending"]]);
		const values = { n: 2, text: `${LONG} again` };
		for (let time = 1; time <= 2; time++) {
			await main.put({ id, ...link(id, parent), values });
			expect(await main.values(id)).toEqual(values);
			expect(await main.parentOf(id)).toBe(parent);
			expect(await main.pending(id)).toHaveLength(1);
		}
		expect(await main.ids()).toEqual([child, id, parent, root]);
		expect(await main.values(child)).toEqual({ n: 3, text: `3 ${LONG}` });
		expect(await main.parentOf(child)).toBe(id);
		expect(await saver.verify()).toMatchObject({ checkpoints: 4, unreachable: 0, damage: [] });
		await saver.close();
	});
});

it.each(AGAIN.slice(0, 2))(
	"a checkpoint that another process has linked to another parent, put again %s, keeps that one",
	async (_, link) => {
		const [one, two] = [new SqliteSaver(path), new SqliteSaver(path)];
		const main = thread(one);
		const [parent, id] = (await main.chain(2)) as [string, string];
		await two.prune(["thread"]);
		await main.put({ id, ...link(id, parent), values: { step: "again" } });
		expect(await main.values(id)).toEqual({ step: "again" });
		expect(await main.parentOf(id)).toBeUndefined();
		for (const saver of [one, two]) await saver.close();
	},
);

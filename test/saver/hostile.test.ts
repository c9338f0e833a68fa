import { join } from "node:path";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { checkpointId } from "../../src/contract/scene.ts";
import { collect, Thread } from "../../src/contract/thread.ts";
import { type DeltaSaver, MemorySaver } from "../../src/index.ts";
import { PostgresSaver } from "../../src/postgres.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { emptySchema } from "../support/postgres.ts";
import { makeTemporaryFolder, removeFolder } from "../support/run-node.ts";

/** Text that somebody chooses who wants to read or remove what is not theirs, by what it was made for. */
const ATTACKS: Record<string, string[]> = {
	"SQL in a metadata filter key, as in GHSA-9rwj-6rc7-p77c": [
		"x') OR '1'='1",
		"x') = 'y' OR 1=1 --",
		"') UNION SELECT thread_id, head, 1, 2, 3 FROM delta_checkpoints --",
		"x'); DELETE FROM delta_threads; --",
		'x") OR ("1"="1',
		"victim'/**/OR/**/'1'='1",
		"$1",
		"?1",
		":thread",
		"@thread",
	],
	"a search query in a filter, as in GHSA-5mx2-w598-339m": ["*", "*}) | (@thread_id:{*", "-@source:{none}", "{*}"],
	"patterns in ids, as Redis takes them": [
		"?ictim",
		"[v]ictim",
		"v*",
		"victim*",
		"victim:*",
		"*:*:*",
		"vic%",
		"v_ctim",
		"^v",
	],
	"JSON paths": ["$", "$.owner", '$."owner"', "$[0]", "owner.name", "$.*", "$..owner", "{}", "'owner'", '"owner"'],
	"names that objects inherit": [
		"__proto__",
		"constructor",
		"prototype",
		"toString",
		"hasOwnProperty",
		"__proto__.isAdmin",
		"constructor.prototype",
		"valueOf",
	],
	"characters that end or change text": [
		"a\u0000victim",
		"victim\u0000",
		"\\",
		"\\'",
		"'",
		'"',
		"`",
		"\ufeffvictim",
		"victim\u200b",
		"%00",
	],
	"what looks like something else": [
		"0",
		"-1",
		"1e3",
		"NaN",
		"null",
		"undefined",
		"true",
		"[]",
		"[object Object]",
		" victim ",
		"VICTIM",
	],
};

function makeRevoked(): unknown {
	const { proxy, revoke } = Proxy.revocable({}, {});
	revoke();
	return proxy;
}

/** Values that throw when they are looked into. */
const BROKEN: Record<string, () => unknown> = {
	"a date behind a proxy": () => new Proxy(new Date(0), {}),
	"an object that says it is a date": () => Object.create(Date.prototype),
	"a date whose toJSON throws": () =>
		Object.assign(new Date(0), {
			toJSON() {
				throw new Error("mine");
			},
		}),
	"a revoked proxy": makeRevoked,
	"an object without end": () => {
		const endless: Record<string, unknown> = {};
		endless.self = endless;
		return endless;
	},
};

const SAVERS: Record<string, (folder: string) => Promise<{ saver: DeltaSaver; leave?: () => Promise<void> }>> = {
	memory: async () => ({ saver: new MemorySaver() }),
	SQLite: async (folder) => ({ saver: new SqliteSaver(join(folder, "test.db")) }),
	"encrypted SQLite": async (folder) => ({
		saver: new SqliteSaver(join(folder, "test.db"), { encryption: { key: new Uint8Array(32).fill(3) } }),
	}),
	PostgreSQL: async () => {
		const { pool, schema, leave } = await emptySchema();
		return { saver: new PostgresSaver(pool, { schema }), leave };
	},
};

for (const [name, setup] of Object.entries(SAVERS))
	describe(`hostile input, in ${name}:`, () => {
		let folder = "";
		let saver: DeltaSaver;
		let leave: (() => Promise<void>) | undefined;
		let lastId = 0;
		let before: unknown;

		const thread = (threadId: string, ns = "") => new Thread(saver, threadId, ns, () => checkpointId(++lastId));
		const victim = async () => [
			await collect(saver.list({ configurable: { thread_id: "victim" } })),
			await saver.getThread("victim"),
		];

		beforeEach(async () => {
			folder = makeTemporaryFolder();
			lastId = 0;
			({ saver, leave } = await setup(folder));
			const metadata = { owner: "victim", run_id: "victim run" };
			const ids = await thread("victim").chain(3, (n) => ({ values: { secret: `secret ${n}` }, metadata }));
			await thread("victim").write(ids[2] as string, [["secret", "pending"]]);
			await thread("victim", "tool:1").put({ values: { secret: "inner" }, metadata });
			before = await victim();
		});

		afterEach(async () => {
			expect(await victim()).toEqual(before);
			expect(await saver.verify()).toMatchObject({ damage: [] });
			expect(Object.keys(Object.prototype)).toEqual([]);
			expect(({} as { isAdmin?: unknown }).isAdmin).toBeUndefined();
			await saver.close();
			await leave?.();
			removeFolder(folder);
		});

		for (const [kind, attacks] of Object.entries(ATTACKS)) {
			it(`a filter finds what is equal and nothing else: ${kind}`, async () => {
				for (const attack of attacks) {
					const find = async (filter: Record<string, unknown>) =>
						(await collect(saver.list({}, { filter }))).map(({ config }) => config.configurable?.thread_id);
					expect(await find({ [attack]: "dummy" })).toEqual([]);
					expect(await find({ owner: attack })).toEqual([]);
					expect(await find({ source: attack })).toEqual([]);
					expect(await find({ owner: { $ne: attack } })).toEqual([]);
					const metadata = Object.fromEntries([[attack, attack]]);
					await thread("attacker").put({ values: {}, metadata });
					expect(await find({ [attack]: attack })).toEqual(["attacker"]);
					await saver.deleteThread("attacker");
				}
			});

			it(`ids reach what they name and nothing else: ${kind}`, async () => {
				for (const attack of attacks) {
					expect(await saver.getTuple({ configurable: { thread_id: attack } })).toBeUndefined();
					const inVictim = { thread_id: "victim", checkpoint_ns: attack, checkpoint_id: attack };
					expect(await saver.getTuple({ configurable: inVictim })).toBeUndefined();
					expect(await collect(saver.list({ configurable: { thread_id: attack } }))).toEqual([]);
					expect(await saver.copyThread(attack, `copy of ${attack}`)).toEqual({ checkpoints: 0, writes: 0 });
					await saver.prune([attack], { strategy: "delete" });
					await saver.deleteForRuns([attack]);
					await saver.deleteThread(attack);
					const own = thread(attack, attack);
					await own.put({ id: attack, values: { [attack]: attack }, metadata: { run_id: attack } });
					await own.write(attack, [[attack, attack]], attack);
					expect(await own.ids()).toEqual([attack]);
					expect(await own.pending(attack)).toEqual([[attack, attack, attack]]);
					await saver.deleteForRuns([attack]);
					expect(await own.ids()).toEqual([]);
					await saver.deleteThread(attack);
				}
			});
		}

		it("a state that looks like a stored object stays the data that it is", async () => {
			const values = {
				constructor: { lc: 1, type: "constructor", id: ["langchain_core", "messages", "AIMessage"], kwargs: {} },
				secret: { lc: 1, type: "secret", id: ["PATH"] },
				undefined: { lc: 2, type: "undefined" },
				set: { lc: 2, type: "constructor", id: ["Set"], args: [] },
				call: { lc: 2, type: "constructor", id: ["Map"], method: "constructor", args: [["x"]] },
				own: JSON.parse('{"__proto__": {"isAdmin": true}, "constructor": {"prototype": {"isAdmin": true}}}'),
			};
			const id = await thread("attacker").put({ values });
			const read = await thread("attacker").values(id);
			expect(read).toEqual(values);
			for (const [channel, value] of Object.entries(read))
				expect([channel, Object.getPrototypeOf(value)]).toEqual([channel, Object.prototype]);
			expect(Object.keys(read.own as object)).toEqual(["__proto__", "constructor"]);
			await saver.deleteThread("attacker");
		});

		for (const [kind, make] of Object.entries(BROKEN))
			it(`a filter with ${kind} is refused, and the saver works on`, async () => {
				for (const filter of [{ owner: make() }, { owner: [make()] }, { owner: { deep: make() } }, { source: make() }])
					for (const config of [{}, { configurable: { thread_id: "victim" } }])
						await expect(collect(saver.list(config, { filter }))).rejects.toMatchObject({ code: "INVALID_OPTION" });
				expect(await collect(saver.list({}, { filter: { owner: "victim" } }))).toHaveLength(4);
			});

		it("a call with an object that can't be looked into is refused, and the saver works on", async () => {
			const config = { configurable: { thread_id: "attacker", checkpoint_id: "c0" } };
			const checkpoint = { ...emptyCheckpoint(), channel_values: { a: 1 }, channel_versions: { a: 1 } };
			const metadata = { source: "loop", step: 0, parents: {} } as const;
			const broken = makeRevoked() as never;
			const configs = [broken, { configurable: broken }, { ...config, metadata: broken }];
			const puts: Parameters<DeltaSaver["put"]>[] = [
				...configs.map((one): Parameters<DeltaSaver["put"]> => [one, checkpoint, metadata, {}]),
				[config, broken, metadata, {}],
				[config, checkpoint, broken, {}],
				[config, checkpoint, metadata, broken],
				[config, checkpoint, { ...metadata, when: new Proxy(new Date(0), {}) } as never, {}],
			];
			for (const part of ["channel_values", "channel_versions", "versions_seen"])
				puts.push([config, { ...checkpoint, [part]: broken }, metadata, {}]);
			puts.push([config, { ...checkpoint, versions_seen: { node: broken } }, metadata, {}]);
			const refused = { code: expect.stringMatching(/^(INVALID_CONFIG|UNSERIALIZABLE)$/) };
			for (const one of puts) await expect(saver.put(...one)).rejects.toMatchObject(refused);
			for (const one of configs) await expect(saver.putWrites(one, [["a", 1]], "t")).rejects.toMatchObject(refused);
			for (const writes of [broken, [broken], [["a", broken]]] as never[])
				await expect(saver.putWrites(config, writes, "t")).rejects.toMatchObject(refused);
			for (const one of configs.slice(0, 2)) {
				await expect(saver.getTuple(one)).rejects.toMatchObject(refused);
				await expect(collect(saver.list(one))).rejects.toMatchObject(refused);
				await expect(collect(saver.list({}, { before: one }))).rejects.toMatchObject(refused);
				await expect(collect(saver.listCheckpoints(one))).rejects.toMatchObject(refused);
			}
			expect(await saver.getThread("attacker")).toBeUndefined();
			await saver.put(config, checkpoint, metadata, {});
			await saver.deleteThread("attacker");
		});

		it("what is not a text is refused or read as one, and never as a query", async () => {
			for (const id of [
				{ $gt: "" },
				["victim"],
				{ toString: () => "victim" },
				null,
				Symbol("victim"),
				() => "victim",
			]) {
				const config = { configurable: { thread_id: id } } as never;
				await expect(thread("x").saver.put(config, {} as never, {} as never, {})).rejects.toMatchObject({
					code: "INVALID_CONFIG",
				});
				await expect(saver.deleteThread(id as never)).rejects.toMatchObject({ code: "INVALID_CONFIG" });
			}
			for (const filter of [{ owner: { $ne: "" } }, { owner: ["victim"] }, { owner: { length: 6 } }])
				expect(await collect(saver.list({}, { filter }))).toEqual([]);
		});
	});

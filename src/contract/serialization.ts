import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { assertRejects, assertStillWorks, readThread } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { FailingSerde, JsonSerde, NonceSerde, SlowSerde, SyncSerde, TaggedSerde, TextSerde } from "./serdes.ts";
import { collect, TASK } from "./thread.ts";

const REFUSED = "refuse this";

/** How a serializer of the user's own is treated. */
export function serializationRules(test: RuleTest): void {
	for (const [kind, create] of Object.entries({
		"with a type tag per value": () => new TaggedSerde(),
		"that answers at once": () => new SyncSerde(),
		"that answers later": () => new SlowSerde(),
		"that gives text": () => new TextSerde(),
		"that gives other bytes each time": () => new NonceSerde(),
	})) {
		test.opening(`SER-3: a serializer ${kind} is honoured`, async (open) => {
			const scene = await open(create());
			await assertRoundTrips(scene);
		});
	}

	test.opening("SER-3: a serializer is given channel values, writes and metadata one at a time", async (open) => {
		const serde = new JsonSerde();
		const scene = await open(serde);
		const { given } = await assertRoundTrips(scene);
		for (const value of serde.dumped)
			assert.ok(
				given.some((one) => isDeepStrictEqual(one, value)),
				`the serializer was given ${JSON.stringify(value)}`,
			);
		assert.ok(serde.dumped.length > 0);
	});

	test.opening("SER-3: the saver's serde is the one it was given", async (open) => {
		const serde = new JsonSerde();
		assert.equal((await open(serde)).saver.serde, serde);
	});

	test.opening("CH-6: a channel that did not change is not serialized again", async (open) => {
		const serde = new JsonSerde();
		const { thread } = await open(serde);
		const values = { big: "not serialized twice", count: 0 };
		const parent = await thread().put({ values, versions: { big: 1, count: 1 }, source: "input" });
		await thread().put({
			parent,
			values: { ...values, count: 1 },
			versions: { big: 1, count: 2 },
			newVersions: { count: 2 },
		});
		assert.equal(serde.dumped.filter((value) => value === values.big).length, 1);
		assert.deepEqual(await thread().values(), { ...values, count: 1 });
	});

	test.opening("D-3: a delta history loads only the channels it was asked for", async (open) => {
		const serde = new JsonSerde();
		const { thread } = await open(serde);
		const ids = await thread().chain(6, (n) => ({
			values: { other: `other ${n}`, ...(n === 1 ? { log: "seed" } : {}) },
			versions: { other: n + 1, log: n + 1 },
		}));
		for (const id of ids)
			await thread().write(id, [
				["log", "wanted"],
				["other", "unwanted"],
			]);
		serde.loaded.length = 0;
		assert.deepEqual(await thread().replay(ids[5] as string, "log"), { writes: Array(4).fill("wanted"), seed: "seed" });
		assert.deepEqual(
			serde.loaded.filter((value) => String(value).startsWith("other") || value === "unwanted"),
			[],
		);
	});

	for (const manner of ["throw", "reject"] as const) {
		test.opening(`SER-3: a value whose serializer fails (${manner}) is refused and the saver goes on`, async (open) => {
			const { saver, thread } = await open(new FailingSerde(REFUSED, manner));
			const id = await thread().put({ values: { a: "good" } });
			const [config, checkpoint, metadata, versions] = thread().draft({
				parent: id,
				values: { a: "good", b: REFUSED },
			});
			await assertRejects(() => saver.put(config, checkpoint, metadata, versions), "UNSERIALIZABLE");
			await assertRejects(() => saver.putWrites(thread().config(id), [["b", REFUSED]], TASK), "UNSERIALIZABLE");
			assert.deepEqual(await thread().ids(), [id]);
			assert.deepEqual(await thread().pending(id), []);
			await assertStillWorks(thread());
		});
	}

	test.opening("SER-3: a value that its serializer can't load is named, and the rest stays readable", async (open) => {
		const { saver, thread } = await open(new FailingSerde(REFUSED, "load"));
		const broken = await thread().put({ values: { a: REFUSED } });
		const good = await thread().put({ values: { a: "good" } });
		await assertRejects(() => saver.getTuple(thread().config(broken)), "CORRUPT");
		await assertRejects(() => collect(saver.list(thread().config(broken))), "CORRUPT");
		assert.deepEqual(await thread().values(good), { a: "good" });
		await assertStillWorks(thread());
	});

	test("SER-5: NUL and other control characters survive in metadata, versions and values", async ({ thread }) => {
		const text = "a\u0000b\u0001\u001f\u007f\ufeff\u2028\uffff";
		const draft = { values: { [text]: text }, versions: { [text]: text }, seen: { [text]: { [text]: text } } };
		const id = await thread().put({ ...draft, metadata: { [text]: text, nested: [text, { [text]: null }] } });
		const { checkpoint, metadata } = await thread().read(id);
		assert.deepEqual(checkpoint.channel_values, draft.values);
		assert.deepEqual(checkpoint.channel_versions, draft.versions);
		assert.deepEqual(checkpoint.versions_seen, draft.seen);
		assert.deepEqual(metadata, {
			source: "loop",
			step: -1,
			parents: {},
			[text]: text,
			nested: [text, { [text]: null }],
		});
		assert.deepEqual(await thread().ids({ filter: { [text]: text } }), [id]);
	});
}

/** Appends, edits and forks, with writes; reads all of it back. Gives every value that was put. */
async function assertRoundTrips(scene: Scene): Promise<{ given: unknown[] }> {
	const thread = scene.thread();
	const given: unknown[] = [];
	const expected = new Map<string, unknown>();
	const put = async (parent: string | undefined, values: Record<string, unknown>, step: number) => {
		const metadata = { step, note: `note ${step}` };
		const id = await thread.put({ parent, values, metadata });
		await thread.write(id, [
			["list", { write: step }],
			["none", null],
		]);
		given.push(...Object.values(values), { write: step }, null, (await thread.read(id)).metadata);
		expected.set(id, structuredClone(values));
		return id;
	};
	const item = (n: number) => ({ id: n, text: `item ${n} `.repeat(10) });
	let parent: string | undefined;
	for (let n = 0; n < 12; n++) {
		const list = Array.from({ length: n + 1 }, (_, i) => item(i));
		const map = { fixed: "f".repeat(100), [`key ${n}`]: n };
		parent = await put(parent, { list, map, text: "long text ".repeat(n + 20), n, nil: null }, n);
		if (n === 5) await put(parent, { list: [item(0), item(99)], map: {}, text: "", n: -1, nil: null }, 100);
	}
	for (const [id, values] of expected) assert.deepEqual(await thread.values(id), values);
	for (const { pendingWrites, metadata } of await readThread(scene.saver, "thread"))
		assert.deepEqual(pendingWrites, [
			[TASK, "list", { write: metadata?.step }],
			[TASK, "none", null],
		]);
	return { given };
}

import assert from "node:assert/strict";
import { partsOf } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import type { Scene } from "./scene.ts";
import { collect } from "./thread.ts";

/** Which checkpoints are listed, in which order, and what may happen in between. */
export function listRules(test: RuleTest): void {
	test("LIST-1: the newest id comes first", async ({ thread }) => {
		const ids = await thread().chain(12);
		assert.deepEqual(await thread().ids(), ids.reverse());
	});

	test("LIST-1: what the config leaves out is not restricted", async (scene) => {
		const { a, aSub, b } = await putPlaces(scene);
		const list = async (configurable?: Record<string, unknown>) =>
			(await collect(scene.saver.list({ configurable }))).map(({ checkpoint }) => checkpoint.id);
		assert.deepEqual(await list({ thread_id: "a", checkpoint_ns: "" }), [a]);
		assert.deepEqual(await list({ thread_id: "a", checkpoint_ns: "sub" }), [aSub]);
		assert.deepEqual(await list({ thread_id: "a" }), [aSub, a]);
		assert.deepEqual(await list({ checkpoint_ns: "" }), [b, a]);
		assert.deepEqual(await list({}), [b, aSub, a]);
		assert.deepEqual(await list(), [b, aSub, a]);
		assert.deepEqual(await list({ thread_id: "c" }), []);
		assert.deepEqual(await list({ thread_id: "b", checkpoint_ns: "sub" }), []);
	});

	test("LIST-1: a checkpoint_id in the config gives that one checkpoint", async ({ saver, thread }) => {
		const ids = await thread().chain(3);
		await thread("other").put({ id: ids[1] });
		const listed = await collect(saver.list(thread().config(ids[1])));
		assert.deepEqual(
			listed.map(({ config }) => config),
			[thread().config(ids[1])],
		);
		const everywhere = await collect(saver.list({ configurable: { checkpoint_id: ids[1] } }));
		assert.deepEqual(everywhere.map(({ config }) => config.configurable?.thread_id).sort(), ["other", "thread"]);
	});

	test("LIST-1: ids are ordered across threads and namespaces", async ({ saver, thread }) => {
		const ids: string[] = [];
		for (let n = 0; n < 12; n++) ids.push(await thread(`thread ${n % 3}`, ["", "sub"][n % 2]).put());
		const listed = await collect(saver.list({}));
		assert.deepEqual(
			listed.map(({ checkpoint }) => checkpoint.id),
			ids.reverse(),
		);
	});

	test("LIST-2: before gives only smaller ids", async ({ thread }) => {
		const ids = await thread().chain(5);
		const before = (id?: string) => thread().ids({ before: { configurable: { checkpoint_id: id } } });
		assert.deepEqual(await before(ids[3]), [ids[2], ids[1], ids[0]]);
		assert.deepEqual(await before(ids[0]), []);
		assert.deepEqual(await before("ffffffff"), [...ids].reverse());
		assert.deepEqual(await before(`${ids[2]}0`), [ids[2], ids[1], ids[0]]);
		assert.deepEqual(await before("0"), []);
	});

	test("LIST-2: the thread and namespace of before do not matter", async ({ thread }) => {
		const ids = await thread().chain(3);
		assert.deepEqual(await thread().ids({ before: thread("unknown", "elsewhere").config(ids[1]) }), [ids[0]]);
		assert.deepEqual(await thread("thread", "sub").ids({ before: thread().config(ids[2]) }), []);
	});

	test("LIST-3: limit gives at most so many, and 0 gives none", async ({ thread }) => {
		const ids = (await thread().chain(5)).reverse();
		for (const limit of [0, 1, 2, 5, 6, 1000]) assert.deepEqual(await thread().ids({ limit }), ids.slice(0, limit));
		const before = thread().config(ids[1]);
		assert.deepEqual(await thread().ids({ limit: 2, before }), ids.slice(2, 4));
	});

	test("LIST-3: a limit may be any number: a part of one is one more, and a large one is none", async ({ thread }) => {
		const ids = (await thread().chain(4)).reverse();
		for (const [limit, count] of [
			[1.5, 2],
			[0.1, 1],
			[-1, 0],
			[-0.5, 0],
			[1e20, 4],
			[Number.MAX_VALUE, 4],
			[Number.POSITIVE_INFINITY, 4],
		] as const)
			assert.deepEqual(await thread().ids({ limit }), ids.slice(0, count), String(limit));
	});

	test("LIST-3: limit counts over all threads and namespaces", async (scene) => {
		const { aSub, b } = await putPlaces(scene);
		const listed = await collect(scene.saver.list({}, { limit: 2 }));
		assert.deepEqual(
			listed.map(({ checkpoint }) => checkpoint.id),
			[b, aSub],
		);
		assert.deepEqual(await collect(scene.saver.list({}, { limit: 0 })), []);
	});

	test("LIST-4: a listed tuple equals the one that getTuple gives", async ({ saver, thread }) => {
		const ids = await thread().chain(4, (n) => ({
			values: {
				list: Array.from({ length: n }, (_, i) => `item ${i}`),
				nothing: undefined,
				bytes: new Uint8Array([n]),
			},
			v: n === 3 ? 1 : 4,
			metadata: { extra: { n } },
		}));
		for (const id of ids)
			await thread().write(id, [
				["list", id],
				["__interrupt__", "?"],
				["__pregel_tasks", "send"],
			]);
		const listed = await collect(saver.list(thread().config()));
		assert.equal(listed.length, 4);
		for (const tuple of listed) assert.deepEqual(partsOf(tuple), partsOf(await thread().read(tuple.checkpoint.id)));
	});

	test("LIST-5: the saver can be read and written between two items", async ({ saver, thread }) => {
		const ids = await thread().chain(5);
		const seen: string[] = [];
		for await (const { checkpoint, config } of saver.list(thread().config())) {
			seen.push(checkpoint.id);
			await saver.getTuple(config);
			await saver.getDeltaChannelHistory({ config, channels: ["log"] });
			await thread().write(checkpoint.id, [["a", 1]]);
			await thread("other").put({ values: { a: 1 } });
			await collect(saver.list(thread("other").config(), { limit: 1 }));
		}
		assert.deepEqual(seen, ids.reverse());
		assert.equal((await thread("other").ids()).length, 5);
	});

	test("LIST-5: a listing that is left early leaves nothing behind", async ({ saver, thread }) => {
		await thread().chain(5);
		for (let n = 0; n < 30; n++) {
			for await (const _ of saver.list(thread().config())) break;
			const generator = saver.list({});
			await generator.next();
			await generator.return(undefined);
			assert.equal((await generator.next()).done, true);
		}
		const failing = async () => {
			for await (const _ of saver.list({})) throw new Error("of the consumer");
		};
		await assert.rejects(failing, /of the consumer/);
		await saver.deleteThread("thread");
		assert.deepEqual(await thread().ids(), []);
	});

	test("LIST-5: the thread may be deleted between two items", async ({ saver, thread }) => {
		await thread().chain(5);
		let seen = 0;
		for await (const _ of saver.list(thread().config())) if (++seen === 2) await saver.deleteThread("thread");
		assert.ok(seen >= 2);
		assert.deepEqual(await thread().ids(), []);
	});

	test("LIST-5: two listings may run at once", async ({ saver, thread }) => {
		const ids = (await thread().chain(4)).reverse();
		const [one, two] = [saver.list(thread().config()), saver.list(thread().config())];
		for (const id of ids) {
			assert.equal((await one.next()).value?.checkpoint.id, id);
			assert.equal((await two.next()).value?.checkpoint.id, id);
		}
	});

	test("LIST-5: a listing that nobody reads does nothing", async ({ saver, thread }) => {
		saver.list({ configurable: { thread_id: "thread" } });
		const id = await thread().put();
		assert.deepEqual(await thread().ids(), [id]);
	});
}

async function putPlaces({ thread }: Scene): Promise<{ a: string; aSub: string; b: string }> {
	return { a: await thread("a").put(), aSub: await thread("a", "sub").put(), b: await thread("b").put() };
}

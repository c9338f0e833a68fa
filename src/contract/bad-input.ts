import assert from "node:assert/strict";
import { assertRejects, assertStillWorks } from "./asserts.ts";
import type { RuleTest } from "./rule-test.ts";
import { collect, TASK } from "./thread.ts";

const WRONG_TYPES: Record<string, unknown> = { "a number": 5, "an object": {}, "an array": ["x"], true: true };

/** What is wrong is refused with a code, by a rejected promise, and leaves the saver working. */
export function badInputRules(test: RuleTest): void {
	for (const [kind, value] of Object.entries(WRONG_TYPES)) {
		test(`FAIL-3: a checkpoint_id that is ${kind} is refused with INVALID_CONFIG`, async ({ saver, thread }) => {
			const [, checkpoint, metadata, versions] = thread().draft();
			const config = { configurable: { thread_id: "thread", checkpoint_ns: "", checkpoint_id: value as string } };
			await assertRejects(() => saver.put(config, checkpoint, metadata, versions), "INVALID_CONFIG");
			await assertRejects(() => saver.putWrites(config, [["a", 1]], TASK), "INVALID_CONFIG");
			await assertRejects(() => saver.getTuple(config), "INVALID_CONFIG");
			assert.deepEqual(await thread().ids(), []);
			await assertStillWorks(thread());
		});

		test(`FAIL-3: a checkpoint_ns that is ${kind} is refused with INVALID_CONFIG`, async ({ saver, thread }) => {
			const [, checkpoint, metadata, versions] = thread().draft();
			const config = {
				configurable: { thread_id: "thread", checkpoint_ns: value as string, checkpoint_id: checkpoint.id },
			};
			await assertRejects(() => saver.put(config, checkpoint, metadata, versions), "INVALID_CONFIG");
			await assertRejects(() => saver.putWrites(config, [["a", 1]], TASK), "INVALID_CONFIG");
			await assertRejects(() => saver.getTuple(config), "INVALID_CONFIG");
			await assertStillWorks(thread());
		});
	}

	test("FAIL-3: a thread_id that is an object is refused when reading too", async ({ saver, thread }) => {
		const config = { configurable: { thread_id: {} as string, checkpoint_ns: "" } };
		await assertRejects(() => saver.getTuple(config), "INVALID_CONFIG");
		await assertRejects(() => collect(saver.list(config)), "INVALID_CONFIG");
		await assertStillWorks(thread());
	});

	test("FAIL-3: putWrites never throws synchronously", async ({ saver, thread, nextId }) => {
		const config = thread().config(nextId());
		await assertRejects(() => saver.putWrites(undefined as never, [["a", 1]], TASK));
		await assertRejects(() => saver.putWrites({ configurable: null as never }, [["a", 1]], TASK));
		await assertRejects(() => saver.putWrites(config, undefined as never, TASK));
		await assertRejects(() => saver.putWrites(config, [undefined as never], TASK));
		await assertStillWorks(thread());
	});

	test("FAIL-3: put never throws synchronously", async ({ saver, thread }) => {
		const [config, checkpoint, metadata, versions] = thread().draft();
		await assertRejects(() => saver.put(undefined as never, checkpoint, metadata, versions));
		await assertRejects(() => saver.put({ configurable: null as never }, checkpoint, metadata, versions));
		await assertRejects(() => saver.put(config, undefined as never, metadata, versions));
		await assertRejects(() => saver.put(config, { ...checkpoint, id: undefined as never }, metadata, versions));
		assert.deepEqual(await thread().ids(), []);
		await assertStillWorks(thread());
	});

	test("FAIL-3: a value that throws when it is read is refused, not thrown", async ({ saver, thread }) => {
		const id = await thread().put();
		const trap = {
			get boom(): never {
				throw new Error("from the getter");
			},
		};
		const [config, checkpoint, metadata, versions] = thread().draft({ parent: id, values: { good: 1, trap } });
		await assertRejects(() => saver.put(config, checkpoint, metadata, versions), "UNSERIALIZABLE");
		await assertRejects(
			() =>
				saver.putWrites(
					thread().config(id),
					[
						["good", 1],
						["trap", trap],
					],
					TASK,
				),
			"UNSERIALIZABLE",
		);
		assert.deepEqual(await thread().ids(), [id]);
		assert.deepEqual(await thread().pending(id), []);
		await assertStillWorks(thread());
	});

	for (const [name, make] of Object.entries({
		"a revoked proxy": makeRevoked,
		"an array that says it is endless": makeLong,
	}))
		for (const place of ["itself", "inside"] as const)
			test(`FAIL-3: ${name} is refused, ${place === "inside" ? "also within something" : "as it is"}`, async (scene) => {
				const { saver, thread } = scene;
				const id = await thread().put();
				const value = place === "inside" ? { deep: [make()] } : make();
				const [config, checkpoint, metadata, versions] = thread().draft({ parent: id, values: { good: 1, value } });
				await assertRejects(() => saver.put(config, checkpoint, metadata, versions), "UNSERIALIZABLE");
				await assertRejects(() => saver.putWrites(thread().config(id), [["a", value]], TASK), "UNSERIALIZABLE");
				assert.deepEqual(await thread().ids(), [id]);
				assert.deepEqual(await thread().pending(id), []);
				await assertStillWorks(thread());
			});

	for (const answer of [undefined, null, "text", {}, ["type"], [1, new Uint8Array(1)], ["type", { 0: 1 }]])
		test.opening(`SER-3: a serializer that answers ${JSON.stringify(answer)} is refused`, async (open) => {
			let isBroken = true;
			const { saver, thread } = await open({
				dumpsTyped: async (value: unknown) =>
					isBroken ? (answer as never) : ["json", new TextEncoder().encode(JSON.stringify(value))],
				loadsTyped: async (_type: string, data: Uint8Array | string) =>
					JSON.parse(new TextDecoder().decode(data as Uint8Array)),
			});
			const [config, checkpoint, metadata, versions] = thread().draft({ values: { a: 1 } });
			await assertRejects(() => saver.put(config, checkpoint, metadata, versions), "UNSERIALIZABLE");
			assert.deepEqual(await thread().ids(), []);
			isBroken = false;
			await assertStillWorks(thread());
		});

	test("FAIL-3: deleteThread, copyThread, prune and deleteForRuns refuse what is no id", async ({ saver, thread }) => {
		const id = await thread().put();
		for (const wrong of [undefined, null, {}] as never[]) {
			await assertRejects(() => saver.deleteThread(wrong));
			await assertRejects(() => saver.copyThread(wrong, "copy"));
			await assertRejects(() => saver.copyThread("thread", wrong));
			await assertRejects(() => saver.prune(wrong));
			await assertRejects(() => saver.prune([wrong]));
			await assertRejects(() => saver.deleteForRuns(wrong));
		}
		assert.deepEqual(await thread().ids(), [id]);
		await assertStillWorks(thread());
	});

	test("FAIL-3: a saver in a config is written to JSON as its name", async ({ saver }) => {
		const text = JSON.stringify({ configurable: { __pregel_checkpointer: saver } });
		assert.deepEqual(JSON.parse(text), { configurable: { __pregel_checkpointer: `[${saver.constructor.name}]` } });
	});
}

function makeRevoked(): unknown {
	const { proxy, revoke } = Proxy.revocable({}, {});
	revoke();
	return proxy;
}

function makeLong(): unknown {
	return new Proxy([], { get: (target, name) => (name === "length" ? 2 ** 32 : Reflect.get(target, name)) });
}

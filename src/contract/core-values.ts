import assert from "node:assert/strict";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { DeltaSnapshot, isDeltaSnapshot } from "@langchain/langgraph-checkpoint";
import type { RuleTest } from "./rule-test.ts";

/** In the form of core's `Send`, which is found by its `lg_name`. */
class Send {
	readonly lg_name = "Send";
	readonly node: string;
	readonly args: unknown;
	readonly timeout: unknown;

	constructor(node: string, args: unknown, timeout?: unknown) {
		this.node = node;
		this.args = args;
		this.timeout = timeout;
	}

	toJSON() {
		return { lg_name: this.lg_name, node: this.node, args: this.args, timeout: this.timeout };
	}
}

/** In the form of core's `Overwrite`. */
class Overwrite {
	readonly lg_name = "Overwrite";
	readonly __overwrite__: unknown;

	constructor(value: unknown) {
		this.__overwrite__ = value;
	}

	toJSON() {
		return { __overwrite__: this.__overwrite__ };
	}
}

/** What core itself puts in writes and channels comes back in a form that core understands. */
export function coreValueRules(test: RuleTest): void {
	test("W-7: a Send comes back with its node, arguments and timeout", async ({ thread }) => {
		const sends = [new Send("worker", { n: 1, list: ["a"] }), new Send("worker", null, { runTimeout: 5 })];
		const id = await thread().put({ values: { __pregel_tasks: sends } });
		await thread().write(
			id,
			sends.map((send) => ["__pregel_tasks", send]),
		);
		const written = (await thread().pending(id)).map(([, , value]) => value as Send);
		const stored = (await thread().values(id)).__pregel_tasks as Send[];
		for (const [first, second] of [written, stored]) {
			assert.deepEqual([first?.node, first?.args, first?.timeout], ["worker", { n: 1, list: ["a"] }, undefined]);
			assert.deepEqual([second?.node, second?.args, second?.timeout], ["worker", null, { runTimeout: 5 }]);
		}
	});

	test("W-7: an Overwrite comes back with its own key", async ({ thread }) => {
		const id = await thread().put();
		await thread().write(id, [
			["list", new Overwrite(["x"])],
			["list", { __overwrite__: null }],
		]);
		const [first, second] = (await thread().pending(id)).map(([, , value]) => value as Overwrite);
		assert.equal(Object.hasOwn(first as Overwrite, "__overwrite__"), true);
		assert.deepEqual(first?.__overwrite__, ["x"]);
		assert.deepEqual({ ...second }, { __overwrite__: null });
	});

	test("W-7: interrupts, errors, resume values and empty branches come back as they were", async ({ thread }) => {
		const id = await thread().put();
		const values = {
			__interrupt__: { id: "b7d1", value: { question: "sure?", options: [1, 2] } },
			__error__: { message: "failed", name: "TypeError" },
			__resume__: ["yes", { no: null }],
			"branch:to:next": null,
			none: undefined,
		};
		for (const [task, entry] of Object.entries(values).entries()) await thread().write(id, [entry], `task ${task}`);
		const pending = await thread().pending(id);
		assert.deepEqual(Object.fromEntries(pending.map(([, channel, value]) => [channel, value])), values);
	});

	test("W-7: messages come back as messages, in writes and in channels", async ({ thread }) => {
		const call = { id: "call", name: "search", args: { q: "x" }, type: "tool_call" as const };
		const messages = [
			new HumanMessage({ id: "1", content: "hi", additional_kwargs: { lang: "en" } }),
			new AIMessage({ id: "2", content: [{ type: "text", text: "hello" }], tool_calls: [call], name: "bot" }),
		];
		const id = await thread().put({ values: { messages } });
		await thread().write(id, [["messages", messages]]);
		const written = (await thread().pending(id))[0]?.[2] as typeof messages;
		for (const [human, ai] of [written, (await thread().values(id)).messages as typeof messages]) {
			assert.ok(human instanceof HumanMessage, "the first message is no HumanMessage");
			assert.ok(ai instanceof AIMessage, "the second message is no AIMessage");
			assert.deepEqual([human.id, human.content, human.additional_kwargs], ["1", "hi", { lang: "en" }]);
			assert.deepEqual([ai.id, ai.name, ai.content], ["2", "bot", [{ type: "text", text: "hello" }]]);
			assert.deepEqual(ai.tool_calls, [call]);
		}
	});

	test("W-7: a growing list of messages keeps every message a message", async ({ thread }) => {
		const messages = Array.from({ length: 30 }, (_, n) => new HumanMessage({ id: `${n}`, content: `message ${n}` }));
		const ids = await thread().chain(30, (n) => ({ values: { messages: messages.slice(0, n + 1) } }));
		for (const n of [0, 1, 15, 29]) {
			const stored = (await thread().values(ids[n])).messages as HumanMessage[];
			assert.ok(stored.every((message) => message instanceof HumanMessage));
			assert.deepEqual(
				stored.map(({ content }) => content),
				messages.slice(0, n + 1).map(({ content }) => content),
			);
		}
	});

	test("D-2: a DeltaSnapshot stays recognisable and a plain value stays unwrapped", async ({ thread }) => {
		const values = {
			snapshot: new DeltaSnapshot(["a", { b: 1 }]),
			plain: ["a", { b: 1 }],
			empty: new DeltaSnapshot(undefined),
		};
		const parent = await thread().put({ values });
		const stored = await thread().values(parent);
		const child = await thread().put({ parent, values: {} });
		for (const snapshot of [stored.snapshot, (await thread().replay(child, "snapshot")).seed]) {
			assert.ok(isDeltaSnapshot(snapshot), "the snapshot is not recognised");
			assert.deepEqual(snapshot.value, ["a", { b: 1 }]);
		}
		assert.ok(isDeltaSnapshot(stored.empty), "an empty snapshot is not recognised");
		assert.deepEqual(stored.plain, ["a", { b: 1 }]);
		assert.deepEqual((await thread().replay(child, "plain")).seed, ["a", { b: 1 }]);
	});
}

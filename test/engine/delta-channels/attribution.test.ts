import { uuid5 } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import {
	absorbedTasks,
	attributeOrphans,
	attributeOwnWrites,
	attributeWrites,
	findOriginal,
	type PathCheckpoint,
	type StoredWrite,
} from "../../../src/engine/delta-channels/attribution.ts";

interface Write extends StoredWrite {
	readonly id: string;
	readonly says: string;
}

const NULL_TASK = "00000000-0000-0000-0000-000000000000";
const GRANDPARENT = "1f000000-0000-6000-8000-000000000000";
const PARENT = "1f000000-0000-6000-8000-000000000001";
const UPDATE_TASK = uuid5("__interrupt__", PARENT);
const TASK_A = "aaaaaaaa-1111-5111-8111-111111111111";
const TASK_B = "bbbbbbbb-2222-5222-8222-222222222222";

const parent = checkpoint({ id: PARENT, step: 3, version: 5 });

function checkpoint(facts: Partial<PathCheckpoint> & { version?: number } = {}): PathCheckpoint {
	const { version = 6, ...rest } = facts;
	const versions = { log: version, "branch:to:a": version };
	return { id: "1f000000-0000-6000-8000-000000000002", source: "loop", step: 4, versions, ...rest };
}

function write(says: string, taskId: string, facts: Partial<Write> = {}): Write {
	return { says, taskId, taskPath: undefined, idx: 0, channel: "log", id: PARENT, generation: 0, ...facts };
}

function exitTask(step: number, task: string): string {
	return String(step).padStart(8, "0") + task.slice(8);
}

/** What the writes of the child say. */
function said(
	child: PathCheckpoint,
	writes: Write[],
	more: { siblings?: PathCheckpoint[]; inherited?: string[] } = {},
) {
	const { siblings = [], inherited = [] } = more;
	const input = { parent, child, siblings, channel: "log", writes, inherited: new Set(inherited) };
	return attributeWrites(input).map((made) => made.says);
}

describe("A child that a run put", () => {
	it("under LangGraph 1.5 has nothing of a run that began later at its parent and got no further", () => {
		const child = checkpoint({ source: "input", actor: 20 });
		const command = write("command", NULL_TASK, { actor: 20, taskPath: "" });
		const task = (actor: number) => write("task", TASK_A, { actor });
		expect(said(child, [command, task(30)])).toEqual(["command"]);
		expect(said(child, [command, task(10)])).toEqual(["command", "task"]);
	});

	it("at the end of a superstep has all of its tasks, whatever the clocks of their processes said", () => {
		const child = checkpoint({ actor: 20 });
		expect(said(child, [write("a", TASK_A, { actor: 30 }), write("b", TASK_B, { actor: 20 })])).toEqual(["a", "b"]);
	});

	it("has a pending command that it took over, though its parent was put again later, with as high a version", () => {
		const again = { ...parent, versions: { log: 6 }, firstVersions: { log: 5 }, again: [40] };
		const command = write("command", NULL_TASK, { actor: 20 });
		const siblings = [checkpoint({ id: "1f000000-0000-6000-8000-000000000002", source: "input", actor: 20 })];
		const child = { id: "1f000000-0000-6000-8000-000000000003", source: "input" };
		const ask = (actor: number) =>
			attributeWrites({
				parent: again,
				child: checkpoint({ ...child, actor }),
				siblings,
				channel: "log",
				writes: [command],
			}).map(({ says }) => says);
		expect(ask(30)).toEqual(["command"]);
		expect(ask(50)).toEqual([]);
	});

	it("has the writes of all tasks, by task and index, and none of other channels", () => {
		const writes = [
			write("b", TASK_B),
			write("a2", TASK_A, { idx: 2 }),
			write("a0", TASK_A),
			write("note", TASK_A, { idx: 1, channel: "note" }),
		];
		expect(said(checkpoint(), writes)).toEqual(["a0", "a2", "b"]);
	});

	it("has nothing if the channel has its parent's version", () => {
		expect(said(checkpoint({ version: 5 }), [write("a", TASK_A)])).toEqual([]);
	});

	it("has nothing if neither of them has a version of the channel, as far as its run is known", () => {
		const versions = { other: 1 };
		const input = { parent: { ...parent, versions }, siblings: [], channel: "log", writes: [write("a", TASK_A)] };
		expect(attributeWrites({ ...input, child: checkpoint({ versions, actor: 1 }) })).toEqual([]);
		expect(attributeWrites({ ...input, child: checkpoint({ versions }) })).toEqual(input.writes);
	});

	it("has all writes if it has no versions at all: no graph has put it", () => {
		const writes = [write("a", "task-a", { actor: 1 }), write("b", "task-b")];
		expect(said(checkpoint({ versions: {} }), writes)).toEqual(["a", "b"]);
		expect(said(checkpoint({ versions: {}, actor: 2 }), writes)).toEqual(["a", "b"]);
	});

	it("has none of a state update of its parent", () => {
		expect(said(checkpoint(), [write("update", UPDATE_TASK), write("a", TASK_A)])).toEqual(["a"]);
	});

	it("has what its own run wrote for a task, not what another one wrote before or after", () => {
		const writes = [1, 2, 3].map((actor) => write(`a${actor}`, TASK_A, { actor, generation: actor - 1 }));
		expect(said(checkpoint({ actor: 1 }), writes)).toEqual(["a1"]);
		expect(said(checkpoint({ actor: 2 }), writes)).toEqual(["a2"]);
		expect(said(checkpoint({ actor: 3 }), writes)).toEqual(["a3"]);
	});

	it("has what was pending for the tasks that its own run did not do: the first of several", () => {
		const writes = [
			write("a1", TASK_A, { actor: 1 }),
			write("a2", TASK_A, { actor: 2, generation: 1 }),
			write("b3", TASK_B, { actor: 3 }),
		];
		expect(said(checkpoint({ actor: 3 }), writes)).toEqual(["a1", "b3"]);
	});

	it("has nothing of a task whose writes to the channel its own run did not repeat", () => {
		const writes = [
			write("a1", TASK_A, { actor: 1 }),
			write("note", TASK_A, { actor: 2, generation: 1, channel: "note" }),
			write("b2", TASK_B, { actor: 2 }),
		];
		expect(said(checkpoint({ actor: 2 }), writes)).toEqual(["b2"]);
	});

	it("keeps what a task wrote before its own run stored only an interrupt for it", () => {
		const writes = [
			write("a1", TASK_A, { actor: 1 }),
			write("interrupt", TASK_A, { actor: 2, idx: -3, channel: "__interrupt__" }),
		];
		expect(said(checkpoint({ actor: 2 }), writes)).toEqual(["a1"]);
	});

	it("has none of the tasks that are the grandparent's", () => {
		expect(said(checkpoint(), [write("a", TASK_A), write("b", TASK_B)], { inherited: [TASK_A] })).toEqual(["b"]);
	});
});

describe("A command's update", () => {
	const command = write("command", NULL_TASK, { actor: 2 });
	const heir = checkpoint({ id: "1f000000-0000-6000-8000-000000000005", source: "input", actor: 2 });

	it("is in the input that the command put, and comes first in a child that went on with it", () => {
		expect(said(heir, [write("a", TASK_A), command])).toEqual(["command"]);
		expect(said(checkpoint({ actor: 2 }), [write("a", TASK_A, { actor: 2 }), command])).toEqual(["command", "a"]);
	});

	it("is not in an input that did not change the channel", () => {
		expect(said(checkpoint({ source: "input", version: 5 }), [command])).toEqual([]);
	});

	it("is not in a child that was there before", () => {
		const child = checkpoint({ actor: 1 });
		expect(said(child, [write("a", TASK_A, { actor: 1 }), command], { siblings: [heir] })).toEqual(["a"]);
	});

	it("is not in a child whose run gave an answer over it", () => {
		const answer = write("answer", NULL_TASK, { actor: 3, idx: -4, channel: "__resume__" });
		const writes = [write("a", TASK_A, { actor: 3 }), command, answer];
		expect(said(checkpoint({ actor: 3 }), writes)).toEqual(["a"]);
	});

	it("is that of its own run, whole, if several were given to one checkpoint", () => {
		const writes = [
			write("first", NULL_TASK, { actor: 2, idx: 0 }),
			write("first's more", NULL_TASK, { actor: 2, idx: 1 }),
			write("second", NULL_TASK, { actor: 3, generation: 1, idx: 0 }),
		];
		expect(said(checkpoint({ source: "input", actor: 3 }), writes)).toEqual(["second"]);
	});

	it("is in a time travel to a checkpoint where it is pending, if that changed the channel", () => {
		const travel = { id: "1f000000-0000-6000-8000-000000000009", source: "fork", actor: 3 };
		expect(said(checkpoint(travel), [write("a", TASK_A), command], { siblings: [heir] })).toEqual(["command"]);
		expect(said(checkpoint({ ...travel, version: 5 }), [write("a", TASK_A), command])).toEqual([]);
	});
});

describe("A state update", () => {
	const update = (actor: number, facts = {}) => checkpoint({ source: "update", actor, ...facts });

	it("has its own writes only, whichever came first to be seen", () => {
		const writes = [
			write("a", TASK_A, { actor: 1 }),
			write("first", UPDATE_TASK, { actor: 2 }),
			write("second", UPDATE_TASK, { actor: 3, generation: 1 }),
		];
		expect(said(update(2), writes)).toEqual(["first"]);
		expect(said(update(3), writes)).toEqual(["second"]);
	});

	it("has the writes of all its nodes in their order", () => {
		const writes = [
			write("second node", UPDATE_TASK, { actor: 2, generation: 1 }),
			write("first node, second write", UPDATE_TASK, { actor: 2, idx: 1 }),
			write("first node", UPDATE_TASK, { actor: 2 }),
		];
		expect(said(update(2), writes)).toEqual(["first node", "first node, second write", "second node"]);
	});

	it("has the tasks that had finished before its own writes if it took them over", () => {
		const writes = [write("update", UPDATE_TASK, { actor: 2 }), write("b", TASK_B, { actor: 1 })];
		expect(said(update(2, { absorbed: true }), writes)).toEqual(["b", "update"]);
		const note = [write("note", UPDATE_TASK, { actor: 2, channel: "note" }), write("b", TASK_B, { actor: 1 })];
		const versions = { log: 5, "branch:to:a": 6 };
		expect(said(update(2, { absorbed: true, versions }), note)).toEqual(["b"]);
		expect(said(update(2, { versions }), note)).toEqual([]);
	});

	it("has nothing if it changed no version", () => {
		expect(said(update(2, { version: 5 }), [write("a", TASK_A), write("command", NULL_TASK)])).toEqual([]);
	});

	it("as the end has the pending writes, but not those of a run that began later, whether it went on or not", () => {
		const writes = [write("a", TASK_A, { actor: 1 }), write("b", TASK_B, { actor: 3 })];
		const later = checkpoint({ id: "1f000000-0000-6000-8000-000000000009", actor: 3 });
		expect(said(update(4), writes)).toEqual(["a", "b"]);
		expect(said(update(2), writes)).toEqual(["a"]);
		expect(said(update(2), writes, { siblings: [later] })).toEqual(["a"]);
	});

	it("is known by its task id where nothing else is known", () => {
		const child = checkpoint({ source: "update" });
		expect(said(child, [write("a", TASK_A), write("update", UPDATE_TASK)])).toEqual(["update"]);
	});
});

describe("A child of a run in exit durability", () => {
	const child = checkpoint({ step: 6, actor: 2 });

	it("has the writes of its supersteps in their order, and those of no other run", () => {
		const writes = [
			write("10", exitTask(6, TASK_A), { actor: 2 }),
			write("9", exitTask(5, TASK_B), { actor: 2 }),
			write("other", exitTask(5, "cccccccc-3333-5333-8333-333333333333"), { actor: 3 }),
		];
		expect(said(child, writes)).toEqual(["9", "10"]);
	});

	it("has a finished task only once that it filed again", () => {
		const writes = [
			write("a", TASK_A, { actor: 1 }),
			write("a", exitTask(4, TASK_A), { actor: 2 }),
			write("b", exitTask(4, TASK_B), { actor: 2 }),
		];
		expect(said(child, writes)).toEqual(["a", "b"]);
	});

	it("has none of the older writes that it filed again after a time travel", () => {
		const writes = [
			write("old", TASK_A, { actor: 1 }),
			write("old", exitTask(5, TASK_A), { actor: 2 }),
			write("new", exitTask(5, TASK_B), { actor: 2 }),
		];
		expect(said(child, writes)).toEqual(["new"]);
	});

	it("has none of a state update that it filed again", () => {
		const writes = [
			write("update", UPDATE_TASK, { actor: 1 }),
			write("update", exitTask(4, UPDATE_TASK), { actor: 2 }),
			write("b", exitTask(4, TASK_B), { actor: 2 }),
		];
		expect(said(child, writes)).toEqual(["b"]);
	});

	it("has what it did, not what it filed again under the same id before", () => {
		const earlier = checkpoint({ id: "1f000000-0000-6000-8000-00000000000a", actor: 1 });
		const later = checkpoint({ id: "1f000000-0000-6000-8000-00000000000b", actor: 2 });
		const task = exitTask(4, TASK_A);
		const writes = [
			write("first run's", task, { actor: 1 }),
			write("first run's", task, { actor: 2, generation: 1 }),
			write("second run's", task, { actor: 2, generation: 2 }),
		];
		expect(said(earlier, writes, { siblings: [later] })).toEqual(["first run's"]);
		expect(said(later, writes, { siblings: [earlier] })).toEqual(["second run's"]);
	});

	it("is not one because a task's id happens to look like that of a later step", () => {
		const step = checkpoint({ actor: 2 });
		const writes = [write("a", exitTask(100, TASK_A), { actor: 2 }), write("b", TASK_B, { actor: 2 })];
		expect(said(step, writes)).toEqual(["a", "b"]);
		const unknown = checkpoint({ actor: undefined });
		expect(said(unknown, writes)).toEqual(["a", "b"]);
	});

	it("leaves the exit writes of others to them if it was not one", () => {
		const writes = [
			write("a", TASK_A, { actor: 1 }),
			write("exit", exitTask(4, TASK_B), { actor: 2 }),
			write("exit", exitTask(9, TASK_B), { actor: 2 }),
		];
		expect(said(checkpoint({ actor: 1 }), writes)).toEqual(["a"]);
	});

	it("has all exit writes up to its step where the runs are not known", () => {
		const writes = [
			write("a", TASK_A),
			write("5", exitTask(5, TASK_A)),
			write("4", exitTask(4, TASK_A)),
			write("7", exitTask(7, TASK_A)),
		];
		expect(said(checkpoint({ step: 6 }), writes)).toEqual(["4", "5"]);
	});

	it("has the command that steps -1 and 0 file under strange ids", () => {
		const stub = { id: PARENT, source: "loop", step: -2, versions: {}, actor: 2 };
		const writes = [
			write("step 0", NULL_TASK, { actor: 2 }),
			write("step 0's task", exitTask(0, TASK_A), { actor: 2 }),
			write("step -1", `000000-1${NULL_TASK.slice(8)}`, { actor: 2 }),
		];
		const input = { parent: stub, child: checkpoint({ step: 0, actor: 2 }), siblings: [], channel: "log", writes };
		expect(attributeWrites(input).map(({ says }) => says)).toEqual(["step -1", "step 0", "step 0's task"]);
	});
});

describe("A copy", () => {
	const original = checkpoint({ id: "1f000000-0000-6000-8000-000000000003", actor: 7 });
	const twin = checkpoint({ id: "1f000000-0000-6000-8000-000000000004", actor: 8 });
	const copy = checkpoint({ id: "1f000000-0000-6000-8000-000000000005", source: "fork", step: 5, actor: 7 });

	it("is of the checkpoint beside it with the same maker, or else the newest with the same versions", () => {
		const siblings = [original, twin];
		expect(findOriginal({ child: copy, parent, siblings })).toBe(original);
		expect(findOriginal({ child: { ...copy, actor: undefined }, parent, siblings })).toBe(twin);
		const other = { ...copy, actor: undefined, versions: { log: 99 } };
		expect(findOriginal({ child: other, parent, siblings })).toBeUndefined();
	});

	it("is no time travel, which is one step below its parent", () => {
		expect(findOriginal({ child: { ...copy, step: 4 }, parent, siblings: [original] })).toBeUndefined();
	});

	it("has the writes of its original", () => {
		const writes = [write("7's", TASK_A, { actor: 7 }), write("8's", TASK_A, { actor: 8, generation: 1 })];
		expect(said(copy, writes, { siblings: [original, twin] })).toEqual(["7's"]);
	});
});

describe("Writes stored elsewhere", () => {
	const told = (facts: Partial<PathCheckpoint>, writes: Write[], child?: PathCheckpoint) => {
		const self = checkpoint({ id: PARENT, parentId: GRANDPARENT, ...facts });
		return attributeOwnWrites({ checkpoint: self, child, channel: "log", writes }).map(({ says }) => says);
	};

	it("belong to the input that an update as the input stored beside itself, not to its children", () => {
		const typed = write("typed", uuid5("__input__", GRANDPARENT));
		expect(told({ source: "input" }, [typed, write("a", TASK_A)])).toEqual(["typed"]);
		const writes = [typed, write("a", TASK_A)];
		const input = { parent: { ...parent, source: "input", parentId: GRANDPARENT }, child: checkpoint() };
		const made = attributeWrites({ ...input, siblings: [], channel: "log", writes });
		expect(made.map(({ says }) => says)).toEqual(["a"]);
	});

	it("belong to the input whose run stored them there at its end, and then nothing of its parent does", () => {
		const own = write("command", NULL_TASK, { actor: 1 });
		expect(told({ source: "input", actor: 1 }, [own, write("later", NULL_TASK, { actor: 2 })])).toEqual(["command"]);
		expect(told({ source: "loop", actor: 1 }, [own])).toEqual([]);
		const child = checkpoint({ source: "input", actor: 1 });
		const input = { parent, child, siblings: [], channel: "log", writes: [write("old", NULL_TASK, { actor: 9 })] };
		expect(attributeWrites({ ...input, own: [own] })).toEqual([]);
	});

	it("belong to a checkpoint that was put again with them, but not to children from before", () => {
		const writes = [write("command", NULL_TASK, { actor: 2 })];
		const facts = { actor: 1, again: [2] };
		expect(told(facts, writes)).toEqual(["command"]);
		expect(told(facts, writes, checkpoint({ actor: 3 }))).toEqual(["command"]);
		expect(told(facts, writes, checkpoint({ actor: 1 }))).toEqual([]);
	});

	it("belong to the first checkpoint of a thread if its run stored them under an id without a checkpoint", () => {
		const root = checkpoint({ id: PARENT, source: "input", actor: 2 });
		const orphan = (says: string, last: number, actor?: number) =>
			write(says, NULL_TASK, { id: `1e000000-0000-6000-8000-00000000000${last}`, actor });
		const writes = [orphan("mine", 1, 2), orphan("other's", 2, 3)];
		expect(attributeOrphans({ root, channel: "log", writes }).map(({ says }) => says)).toEqual(["mine"]);
		const unknown = [orphan("older", 1), orphan("nearest", 2), write("newer", NULL_TASK, { id: "1f1" })];
		const found = attributeOrphans({ root: { ...root, actor: undefined }, channel: "log", writes: unknown });
		expect(found.map(({ says }) => says)).toEqual(["nearest"]);
	});
});

describe("An update took over finished tasks", () => {
	const state = (seen: object, sends: unknown[] = [], version = 1) => ({
		versions: { __pregel_tasks: version },
		seen: seen as Record<string, Record<string, number>>,
		value: () => JSON.stringify(sends),
	});

	it("if their node has seen more than before", () => {
		expect(absorbedTasks(state({ a: { x: 1 } }), state({ a: { x: 2 } }))).toBe(true);
		expect(absorbedTasks(state({}), state({ a: { x: 2 } }))).toBe(true);
		expect(absorbedTasks(state({ a: { x: 1 } }), state({ a: { x: 1 }, b: {} }))).toBe(false);
	});

	it("if packets are gone although the version is the same", () => {
		expect(absorbedTasks(state({}, ["packet"]), state({}, []))).toBe(true);
		expect(absorbedTasks(state({}, ["packet"]), state({}, [], 2))).toBe(false);
		expect(absorbedTasks(state({}, ["packet"]), state({}, ["packet"]))).toBe(false);
	});
});

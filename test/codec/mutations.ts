import assert from "node:assert/strict";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import fc from "fast-check";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { CLASSES, graph, holdersOf, setKey } from "./arbitraries.ts";

/** One change of a state in place, the way that nodes of a graph make them. */
type Mutation = readonly [kind: number, where: number, what: number, value: unknown];

const small = fc.constantFrom<unknown>(undefined, null, 0, -0, Number.NaN, "a", "b", "text");
const mutation: fc.Arbitrary<Mutation> = fc.tuple(fc.nat({ max: 15 }), fc.nat(), fc.nat(), small);

function changeObject(holder: Record<string, unknown>, kind: number, what: number, value: unknown): void {
	const keys = Object.keys(holder);
	const key = keys[what % Math.max(1, keys.length)] ?? "first";
	if (kind % 4 === 0) setKey(holder, `new ${what % 4}`, value);
	else if (kind % 4 === 1) delete holder[key];
	else if (kind % 4 === 2) setKey(holder, key, value);
	else {
		// The same values under other names, or in another order.
		const old = holder[key];
		delete holder[key];
		setKey(holder, what % 2 ? key : `${key}!`, old);
	}
}

function changeArray(holder: unknown[], kind: number, what: number, value: unknown): void {
	const at = what % Math.max(1, holder.length);
	if (kind % 5 === 0) holder.push(value);
	else if (kind % 5 === 1) delete holder[at];
	else if (kind % 5 === 2) holder[at] = value;
	else if (kind % 5 === 3) holder.splice(at, 1);
	else holder.length = Math.min(4000, holder.length + (what % 3));
}

function changeMessage(message: HumanMessage, kind: number, value: unknown): void {
	if (kind % 4 === 0) message.content = String(value);
	else if (kind % 4 === 1) message.id = String(value);
	else if (kind % 4 === 2) message.additional_kwargs = { value };
	else message.lc_kwargs[`extra ${kind}`] = value;
}

function apply(state: unknown[] | Record<string, unknown>, [kind, where, what, value]: Mutation): void {
	const holders = holdersOf(state);
	const holder = holders[where % holders.length]!;
	const other = holders[what % holders.length];
	if (kind === 0) insert(state, new HumanMessage(`new ${what}`));
	else if (kind === 1) insert(state, new AIMessage({ content: "x", additional_kwargs: { other } }));
	else if (kind === 2) insert(state, { list: [{ value }], nested: { other } });
	else if (kind === 3) insert(state, other);
	else if (kind === 4) insert(holder, other);
	else {
		const messages = Object.values(state).filter((member) => member instanceof HumanMessage);
		if (kind < 8 && messages.length > 0) changeMessage(messages[where % messages.length] as HumanMessage, kind, value);
		else if (Array.isArray(holder)) changeArray(holder, kind, what, value);
		else if (holder instanceof Map) holder.set(value, what);
		else if (holder instanceof Set) holder.add(value);
		else changeObject(holder as Record<string, unknown>, kind, what, value);
	}
}

function insert(holder: object, value: unknown): void {
	if (Array.isArray(holder)) holder.push(value);
	else if (holder instanceof Map || holder instanceof Set) return;
	else setKey(holder, `member ${Object.keys(holder).length}`, value);
}

/** Whatever a codec has seen before, and however that has changed, it gives the bytes of one that has seen nothing. */
export const remembersNothingOld = fc.property(
	fc.array(graph, { maxLength: 4 }),
	fc.boolean(),
	fc.array(mutation, { maxLength: 20 }),
	(members, isArray, mutations) => {
		const codec = new DeltaCodec({ classes: CLASSES });
		// What was generated must stay as it is.
		const own = codec.decode(codec.encode([...longMessages.slice(0, 17), ...members])) as unknown[];
		const state = isArray ? own : { ...own };
		const check = (value: unknown) => {
			const [bytes, expected] = [codec, new DeltaCodec({ classes: CLASSES })].map((one) => one.encode(value).bytes);
			assert.ok(Buffer.compare(bytes!, expected!) === 0, "not the bytes of the value as it is");
		};
		for (const change of mutations) {
			// Only what is there the second time is remembered.
			check(state);
			check(state);
			apply(state, change);
			check(state);
			check(Object.values(state).reverse());
		}
	},
);

/** The same for a list that was read, and noted while it was. */
export const remembersWhatWasRead = fc.property(
	fc.array(graph, { maxLength: 4 }),
	fc.array(mutation, { maxLength: 20 }),
	(members, mutations) => {
		const codec = new DeltaCodec({ classes: CLASSES });
		// Shorter lists are not noted.
		const encoded = codec.encode([...longMessages.slice(0, 17), ...members]);
		const list = codec.decode(encoded, true) as unknown[];
		const check = () => {
			const [bytes, expected] = [codec, new DeltaCodec({ classes: CLASSES })].map((one) => one.encode(list).bytes);
			assert.ok(Buffer.compare(bytes!, expected!) === 0, "not the bytes of the list as it is");
		};
		check();
		for (const change of mutations) {
			apply(list, change);
			check();
		}
		assert.deepEqual(codec.decode(encoded), codec.decode({ type: undefined, bytes: new Uint8Array(encoded.bytes) }));
	},
);

/** Long enough for a list to be gone on with where it ends, instead of being copied. */
const LONG_TEXT = "text ".repeat(60);

const longMessages = Array.from(
	{ length: 24 },
	(_, i) => new HumanMessage({ id: `${i}`, content: `${i} ${LONG_TEXT}` }),
);

/**
 * Branches of one long conversation, which grow in turns, each with the bytes of a codec that has seen nothing. What was
 * encoded before stays what it was, also where a later value goes on in the same memory.
 */
export const leavesOlderBytesAlone = fc.property(
	fc.array(fc.tuple(fc.nat({ max: 3 }), mutation), { minLength: 1, maxLength: 24 }),
	fc.boolean(),
	(steps, goesOn) => {
		const codec = new DeltaCodec({ classes: CLASSES });
		const first = codec.encode(longMessages);
		const start = codec.decode(first, goesOn) as unknown[];
		const branches = [start, [...start], start.slice(0, 20), [{ ...start }, ...start]];
		const kept: [bytes: Uint8Array, copy: Uint8Array][] = [[first.bytes, new Uint8Array(first.bytes)]];
		for (const [which, change] of steps) {
			const list = branches[which] as unknown[];
			const { bytes } = codec.encode(list);
			kept.push([bytes, new DeltaCodec({ classes: CLASSES }).encode(list).bytes]);
			for (const [bytes, copy] of kept) assert.ok(Buffer.compare(bytes, copy) === 0, "other bytes than it should have");
			// Most of the time it grows.
			if (change[0] < 5) apply(list, change);
			else {
				const member = { content: change[0] < 10 ? "short" : LONG_TEXT, [`key ${change[1] % 3}`]: change[3] };
				list.push(...(change[0] < 8 ? [member, { member }] : [member]));
			}
		}
	},
);

import { HumanMessage } from "@langchain/core/messages";
import { Command, Send } from "@langchain/langgraph";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { DeltaCodec } from "../../src/codec/codec.ts";
import { CheckpointError, type Classes, type DeltaSaver, MemorySaver, type SaverOptions } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";
import { CHAINS, DATA, MESSAGES } from "./langchain-values.ts";
import { assertSame } from "./same.ts";
import { LOSSLESS } from "./values.ts";

const BACKENDS: Record<string, (options: SaverOptions) => DeltaSaver> = {
	MemorySaver: (options) => new MemorySaver(options),
	SqliteSaver: (options) => new SqliteSaver(":memory:", options),
};

class Money {
	static made = 0;
	amount: number;
	currency: string;
	constructor(amount: number, currency: string) {
		Money.made++;
		this.amount = amount;
		this.currency = currency;
	}
	get text() {
		return `${this.amount} ${this.currency}`;
	}
}

class Secret {
	readonly #text: string;
	constructor(text: string) {
		this.#text = text;
	}
	reveal() {
		return this.#text;
	}
	toJSON() {
		return { hidden: this.#text };
	}
	static fromJSON({ hidden }: { hidden: string }) {
		return new Secret(hidden);
	}
}

class Node {
	name: string;
	links: unknown = [];
	constructor(name: string) {
		this.name = name;
	}
}

function roundTrip(classes: Classes, value: unknown): any {
	const bytes = new DeltaCodec({ classes }).encode(value);
	return new DeltaCodec({ classes }).decode(bytes);
}

describe("a registered class", () => {
	it("gets its instances back with their properties, and no constructor is called", () => {
		const value = { list: [new Money(1.5, "EUR")], map: new Map([[new Money(2, "USD"), 1]]) };
		const before = Money.made;
		const back = roundTrip({ Money }, value);
		assertSame(back, value);
		expect([back.list[0] instanceof Money, back.list[0].text, Money.made]).toEqual([true, "1.5 EUR", before]);
	});

	it("is asked for data, and makes the instance of it, with hooks of the application", () => {
		const hooks = {
			class: Money,
			encode: (money: Money) => [BigInt(money.amount), money.currency, new Map([["at", new Date(0)]])],
			decode: ([amount, currency, more]: [bigint, string, Map<string, Date>]) =>
				Object.assign(new Money(Number(amount), currency), { more }),
		};
		const back = roundTrip({ Money: hooks }, [new Money(3, "CHF")]);
		assertSame(back, [Object.assign(new Money(3, "CHF"), { more: new Map([["at", new Date(0)]]) })]);
	});

	it("is asked for JSON and makes the instance of it, if it has both ways", () => {
		const [back, plain] = roundTrip({ Secret }, [new Secret("s"), { hidden: "data" }]);
		expect(back.reveal()).toBe("s");
		assertSame(plain, { hidden: "data" });
	});

	it("may turn an instance into a primitive value", () => {
		const hooks = { class: Money, encode: (m: Money) => m.text, decode: (text: string) => new Money(text.length, "") };
		assertSame(roundTrip({ Money: hooks }, { m: new Money(1, "EUR") }), { m: new Money(5, "") });
	});

	it("may give the instance itself for its data: its properties are taken", () => {
		const hooks = { class: Money, encode: (money: Money) => money };
		assertSame(roundTrip({ Money: hooks }, [new Money(1, "EUR")]), [new Money(1, "EUR")]);
	});

	it("that has only toJSON is stored by its properties", () => {
		class OneWay {
			a = 1;
			toJSON() {
				return "text";
			}
		}
		assertSame(roundTrip({ OneWay }, [new OneWay()]), [new OneWay()]);
	});

	it("can extend a class of the language or of LangChain", () => {
		class Tags extends Array<string> {}
		class Index extends Map<string, number> {}
		class NotFound extends Error {
			override name = "NotFound";
			what = "x";
		}
		class Remark extends HumanMessage {}
		const classes: Classes = {
			Tags: { class: Tags, encode: (tags: Tags) => [...tags], decode: (tags: string[]) => Tags.from(tags) },
			Index: { class: Index, encode: (map: Index) => [...map], decode: (all: [string, number][]) => new Index(all) },
			NotFound: { class: NotFound, encode: (e: Error) => e.message, decode: (m: string) => new NotFound(m) },
			Remark: {
				class: Remark,
				encode: ({ content, id }: Remark) => ({ content, id }),
				decode: (fields: { content: string; id: string }) => new Remark(fields),
			},
		};
		const value = [
			Tags.from(["a", "b"]),
			new Index([["k", 1]]),
			new NotFound("no"),
			new Remark({ content: "x", id: "1" }),
		];
		const [tags, index, error, remark] = roundTrip(classes, value);
		expect([tags instanceof Tags, [...tags]]).toEqual([true, ["a", "b"]]);
		expect([index instanceof Index, [...index]]).toEqual([true, [["k", 1]]]);
		expect([error instanceof NotFound, error.message, error.what]).toEqual([true, "no", "x"]);
		expect([Object.getPrototypeOf(remark) === Remark.prototype, remark.content, remark.id]).toEqual([true, "x", "1"]);
		assertSame(roundTrip(classes, Tags.from(["a"])), Tags.from(["a"]));
	});

	it("has no say in instances of classes that extend it", () => {
		class Price extends Money {}
		assertSame(roundTrip({ Money }, [new Price(1, "EUR")]), [{ amount: 1, currency: "EUR" }]);
	});

	it("keeps one instance one, and those that hold themselves or each other", () => {
		const [a, b] = [new Node("a"), new Node("b")];
		a.links = [a, b];
		b.links = new Map<unknown, unknown>([
			[a, b],
			["set", new Set([a])],
		]);
		assertSame(roundTrip({ Node }, { a, again: a, list: [b, b] }), { a, again: a, list: [b, b] });
		assertSame(roundTrip({ Node }, a), a);
	});

	it("can be named in any way, and be found by that name whatever it is called", () => {
		const stored = new DeltaCodec({ classes: { ["__proto__"]: Money, constructor: Node } as never });
		const bytes = stored.encode([new Money(1, "EUR"), new Node("n")]);
		class Renamed extends Money {}
		const reader = new DeltaCodec({ classes: { ["__proto__"]: Renamed, constructor: Node } as never });
		assertSame(reader.decode(bytes), [
			Object.setPrototypeOf({ amount: 1, currency: "EUR" }, Renamed.prototype),
			new Node("n"),
		]);
	});

	it("is found though an instance has a property called constructor", () => {
		const money = Object.assign(new Money(1, "EUR"), { constructor: "the company" });
		assertSame(roundTrip({ Money }, [money]), [money]);
	});

	it("keeps properties called __proto__ what they are", () => {
		const money = new Money(1, "EUR");
		Object.defineProperty(money, "__proto__", {
			value: { x: 1 },
			enumerable: true,
			writable: true,
			configurable: true,
		});
		const [back] = roundTrip({ Money }, [money]);
		assertSame(back, money);
		expect(Object.getPrototypeOf(back)).toBe(Money.prototype);
	});

	it.each([
		["something that is no class", { Money: { amount: 1 } }],
		["nothing", { Money: undefined }],
		["one class under two names", { Money, Cash: Money }],
	])("is refused if it is %s", (_, classes) => {
		expect(() => new DeltaCodec({ classes: classes as never })).toThrow(
			expect.objectContaining({ code: "INVALID_OPTION" }),
		);
	});
});

const config = { configurable: { thread_id: "t" } };

async function put(saver: DeltaSaver, values: Record<string, unknown>, metadata: object = {}) {
	const versions = Object.fromEntries(Object.keys(values).map((channel) => [channel, 1]));
	const checkpoint = { ...emptyCheckpoint(), channel_values: values, channel_versions: versions };
	return saver.put(config, checkpoint, { source: "loop", step: 1, parents: {}, ...metadata }, versions);
}

describe.each(Object.entries(BACKENDS))("%s", (_, make) => {
	it("stores instances of registered classes as values, writes and metadata", async () => {
		await using saver = make({ classes: { Money, Secret } });
		const money = new Money(1, "EUR");
		const stored = await put(saver, { one: money, list: [{ money }] }, { money });
		await saver.putWrites(stored, [["one", money]], "task");
		const tuple = (await saver.getTuple(config))!;
		assertSame(tuple.checkpoint.channel_values, { one: money, list: [{ money: new Money(1, "EUR") }] });
		assertSame((tuple.metadata as any).money, money);
		assertSame(tuple.pendingWrites, [["task", "one", money]]);
	});

	it("refuses in strict mode what would not come back, says where it is, and works on", async () => {
		await using saver = make({ strict: true });
		const messages: unknown[] = [1, 2, 3].map((n) => new HumanMessage(`${n}`));
		messages.push({ metadata: { fn: () => 1 } });
		const rejected = { code: "UNSERIALIZABLE", message: expect.stringContaining(" messages[3].metadata.fn:") };
		await expect(put(saver, { messages })).rejects.toMatchObject(rejected);
		const stored = await put(saver, { fine: messages.slice(0, 3) }, { custom: new Date(0) });
		await expect(saver.putWrites(stored, [["out", { deep: [Symbol("s")] }]], "task")).rejects.toMatchObject({
			code: "UNSERIALIZABLE",
			message: expect.stringContaining(" out.deep[0]:"),
		});
		await expect(put(saver, {}, { who: new Money(1, "EUR") })).rejects.toMatchObject({
			code: "UNSERIALIZABLE",
			message: expect.stringContaining(" metadata.who:"),
		});
		const tuple = (await saver.getTuple(config))!;
		assertSame(
			tuple.checkpoint.channel_values.fine,
			[1, 2, 3].map((n) => new HumanMessage(`${n}`)),
		);
		expect(tuple.pendingWrites).toEqual([]);
	});
});

describe("a saver that does not know a stored class", () => {
	it("says which one, where, and with a code; one that knows it reads it", async () => {
		const { default: Database } = await import("better-sqlite3");
		const db = new Database(":memory:");
		await using writer = new SqliteSaver(db, { classes: { Money } });
		const { configurable } = await put(writer, { purse: [new Money(1, "EUR")], other: 1 });
		await using stranger = new SqliteSaver(db);
		const error = await stranger.getTuple(config).catch((error) => error);
		expect(error).toBeInstanceOf(CheckpointError);
		expect(error.code).toBe("CORRUPT");
		for (const part of ["Money", "purse", configurable!.checkpoint_id, '"t"', "classes"])
			expect(error.message).toContain(part);
		await using friend = new SqliteSaver(db, { classes: { Money } });
		assertSame((await friend.getTuple(config))?.checkpoint.channel_values.purse, [new Money(1, "EUR")]);
		db.close();
	});

	it("gives an error with a code if a class refuses its data", () => {
		const bytes = new DeltaCodec({ classes: { Money } }).encode([new Money(1, "EUR")]);
		for (const thrown of [new TypeError("not mine"), null, new CheckpointError("NOT_FOUND", "x")]) {
			const decode = () => {
				throw thrown;
			};
			const reader = new DeltaCodec({ classes: { Money: { class: Money, decode } } });
			expect(() => reader.decode(bytes)).toThrow(expect.objectContaining({ code: "CORRUPT", cause: thrown }));
			expect(reader.decode(new DeltaCodec().encode([1]))).toEqual([1]);
		}
	});
});

describe("strict mode", () => {
	const strict = new DeltaCodec({ strict: true, classes: { Node } });
	const fn = () => 1;
	const symbol = Symbol("s");
	const money = new Money(1, "EUR");

	const places: [path: string, value: unknown][] = [
		["", fn],
		["", symbol],
		["", money],
		["[0]", [fn]],
		[".a", { a: symbol }],
		[".a[2].b", { a: [1, 2, { b: money }] }],
		['["not a name"].x', { "not a name": { x: fn } }],
		['["0"].ü', { 0: { ü: fn } }],
		['["key"]', new Map([["key", fn]])],
		[
			".keys()[1]",
			new Map<unknown, number>([
				["a", 1],
				[money, 2],
			]),
		],
		[".map[7][0]", { map: new Map([[7, [fn]]]) }],
		["[1]", new Set([1, fn])],
		[".cause.fn", new Error("x", { cause: { fn } })],
		[".errors[1]", new AggregateError([1, fn])],
		["[1].code", [1, Object.assign(new Error("x"), { code: symbol })]],
		["[0].additional_kwargs.fn", [new HumanMessage({ content: "x", additional_kwargs: { fn } })]],
		[".links[0]", Object.assign(new Node("n"), { links: [fn] })],
		[".self.list[0]", round({ list: [money] })],
		["[0]", [Object(1)]],
		["[0]", [Promise.resolve(1)]],
		["[0]", [new WeakMap()]],
		["[0]", [Object.setPrototypeOf([1], class extends Array {}.prototype)]],
		["", Object.setPrototypeOf([1], class extends Array {}.prototype)],
		[".m", { m: Object.setPrototypeOf(new Map(), class extends Map {}.prototype) }],
		[".d", { d: Object.setPrototypeOf(new Date(), class extends Date {}.prototype) }],
	];

	function round(value: Record<string, unknown>): object {
		const inner = { ...value };
		return { self: inner };
	}

	it.each(places)("names the place of what it refuses: %s", (path, value) => {
		const error = catchError(() => strict.encode(value));
		expect(error).toMatchObject({ code: "UNSERIALIZABLE", path });
	});

	it("takes everything that comes back as it was", () => {
		for (const create of [...Object.values(LOSSLESS), ...Object.values(MESSAGES), ...Object.values(DATA)]) {
			const value = create();
			const [bytes, same] = [strict, new DeltaCodec({ classes: { Node } })].map((codec) => codec.encode(value).bytes);
			expect(Buffer.compare(bytes!, same!)).toBe(0);
		}
		for (const create of Object.values(CHAINS)) {
			const json = JSON.stringify(create());
			if (json.includes("not_implemented")) expect(() => strict.encode(create())).toThrow(CheckpointError);
			else expect(strict.encode(create()).bytes.length).toBeGreaterThan(0);
		}
		expect(strict.encode([new Send("n", 1), new Command({ goto: "x" })]).bytes.length).toBeGreaterThan(0);
	});
});

function catchError(work: () => unknown): unknown {
	try {
		work();
	} catch (error) {
		return error;
	}
	throw new Error("nothing was thrown");
}

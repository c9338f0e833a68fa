import { DeltaCodec } from "../../src/codec/codec.ts";
import { assertSame } from "./same.ts";

type Resizable = ArrayBuffer & { resize(bytes: number): void };

/** Memory that can be made smaller. */
function resizable(bytes: number): Resizable {
	return Reflect.construct(ArrayBuffer, [bytes, { maxByteLength: 64 }]) as Resizable;
}

function detach<T extends ArrayBuffer | ArrayBufferView>(value: T): T {
	const buffer = value instanceof ArrayBuffer ? value : value.buffer;
	structuredClone(null, { transfer: [buffer as ArrayBuffer] });
	return value;
}

function shrink<T>(make: (buffer: Resizable) => T): T {
	const buffer = resizable(32);
	const view = make(buffer);
	buffer.resize(4);
	return view;
}

/** Values whose memory is gone, and what is left of them. */
const GONE: Record<string, [make: () => unknown, left: unknown]> = {
	"a detached array of bytes": [() => detach(new Uint8Array(8)), new Uint8Array()],
	"a detached Buffer": [() => detach(Buffer.from(new ArrayBuffer(8))), Buffer.alloc(0)],
	"a detached ArrayBuffer": [() => detach(new ArrayBuffer(8)), new ArrayBuffer(0)],
	"a detached typed array": [() => detach(new Float64Array(8)), new Float64Array()],
	"a detached DataView": [() => detach(new DataView(new ArrayBuffer(8))), new DataView(new ArrayBuffer(0))],
	"a detached view of resizable memory": [() => detach(new Uint8Array(resizable(8))), new Uint8Array()],
	"detached memory that was resizable": [() => detach(resizable(8)), new ArrayBuffer(0)],
	"an array of bytes beyond its memory": [() => shrink((buffer) => new Uint8Array(buffer, 8, 8)), new Uint8Array()],
	"a typed array beyond its memory": [() => shrink((buffer) => new Uint16Array(buffer, 8, 8)), new Uint16Array()],
	"a DataView beyond its memory": [
		() => shrink((buffer) => new DataView(buffer, 8, 8)),
		new DataView(new ArrayBuffer(0)),
	],
};

/** Values that are as sound as any. */
const SOUND: (() => unknown)[] = [
	() => new Uint8Array([1, 2, 3]),
	() => new Uint8Array(),
	() => [1, { a: "x" }],
	() => new Float64Array([1, 2]),
	() => new DataView(new ArrayBuffer(3)),
];

const RESIZABLE: [make: () => unknown, same: unknown][] = [
	[() => resizable(8), new ArrayBuffer(8)],
	[() => new Uint8Array(resizable(8)), new Uint8Array(8)],
	[() => shrink((buffer) => new Uint8Array(buffer)), new Uint8Array(4)],
];

describe("Bytes whose memory is gone", () => {
	const codec = new DeltaCodec();
	const strict = new DeltaCodec({ strict: true });

	it.each(Object.entries(GONE))("come back empty, and are refused in strict mode: %s", (_, [make, left]) => {
		assertSame(codec.decode(codec.encode(make())), left);
		assertSame(codec.decode(codec.encode({ list: [1, make()], after: 2 })), { list: [1, left], after: 2 });
		expect(() => strict.encode({ list: [make()] })).toThrow(
			expect.objectContaining({ code: "UNSERIALIZABLE", path: ".list[0]", reason: expect.stringContaining("memory") }),
		);
		assertSame(strict.decode(strict.encode([new Uint8Array([1])])), [new Uint8Array([1])]);
	});

	it("are told from others also when the code has been optimized for those", () => {
		const gone = Object.values(GONE);
		for (let i = 0; i < 60_000; i++) {
			const sound = SOUND[i % SOUND.length]!;
			assertReads(sound, sound());
			if (i % 5 === 0) assertReads(...RESIZABLE[(i / 5) % RESIZABLE.length]!);
			if (i % 50 === 0) assertReads(...gone[(i / 50) % gone.length]!);
		}
	});

	function assertReads(make: () => unknown, expected: unknown): void {
		const read = codec.decode(codec.encode([make()])) as unknown[];
		assertSame(read, [expected]);
	}
});

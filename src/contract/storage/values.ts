import assert from "node:assert/strict";
import type { StorageTest } from "../storage-contract.ts";
import { assertWrites, plainBase, plainBlob, plainRow, plainWrite } from "./plain.ts";
import { blob, bytes, key, row, type StorageScene, write } from "./storage-scene.ts";

/** Bytes of every kind, of any length. */
function sample(length: number): Uint8Array {
	const data = new Uint8Array(length);
	for (let n = 0; n < length; n++) data[n] = n * 31 + (n >> 8);
	return data;
}

const VALUES: Record<string, () => Uint8Array> = {
	"no bytes": () => new Uint8Array(0),
	"a zero byte": () => new Uint8Array(1),
	"every byte": () => sample(256),
	"text that is not UTF-8": () => new Uint8Array([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
	digits: () => bytes("1234"),
	"a megabyte": () => sample(1 << 20),
	"a part of a larger buffer": () => sample(1_000).subarray(100, 200),
	"a Buffer": () => Buffer.from(sample(1_000)),
};

/** Bytes come back as they were given. */
export function valueRules(test: StorageTest): void {
	for (const [name, make] of Object.entries(VALUES))
		test(`VALUE-BYTES: ${name} in a head, a blob, a write and a delta base`, async (scene) => {
			const data = make();
			const expected = Uint8Array.from(data);
			await putEverywhere(scene, data);
			assert.deepEqual(data, make(), "the bytes that were given have been changed");
			const { storage } = scene;
			const found = await storage.getCheckpoint(key("a"));
			assert.deepEqual(found && plainRow(found).head, expected);
			const [value] = await storage.getWrites([key("a")]);
			assert.deepEqual(value && plainWrite(value).value, expected);
			const [base] = await storage.getDeltaBases([key("a")]);
			assert.deepEqual(base && plainBase(base).data, expected);
			const { family } = await scene.thread();
			const [listed] = await storage.listBlobs(family);
			assert.ok(listed);
			assert.equal(scene.counted(listed).bytes, scene.counted({ bytes: expected.length }).bytes);
			const [stored] = await storage.getBlobs([listed.id]);
			assert.deepEqual(stored && plainBlob(stored).data, expected);
		});

	test("VALUE-NUMBER: the greatest and least numbers come back exact", async ({ storage, put, thread }) => {
		const [most, least] = [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
		const writes = [write("a", "task", most, { value: most, actor: most }), write("a", "task", least)];
		await put({
			checkpoint: row("a", { step: most }),
			writes,
			blobs: [blob(most, "value", most - 1)],
			now: most,
			fresh: most,
		});
		await put({ checkpoint: row("b", { step: least }), now: most });
		assert.equal((await storage.getCheckpoint(key("a")))?.step, most);
		assert.equal((await storage.getCheckpoint(key("b")))?.step, least);
		assertWrites(await storage.getWrites([key("a")]), writes);
		assert.deepEqual((await storage.getBlobs([most])).map(plainBlob), [blob(most, "value", most - 1)]);
		const { family, stamp, updatedAt } = await thread();
		assert.deepEqual([family, stamp, updatedAt], [most, most, most]);
		assert.deepEqual(await storage.listThreads(1, { updatedAt: most, threadId: "zzz" }), [await thread()]);
	});
}

async function putEverywhere({ put, remove, fresh }: StorageScene, data: Uint8Array): Promise<void> {
	await put({
		checkpoint: row("a", { head: data }),
		writes: [write("a", "task", 0, { value: data })],
		blobs: [blob(await fresh(), data)],
	});
	await remove({ deltaBases: [{ ...key("a"), channel: "log", data }] });
}

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import type { DeltaSaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";

function put(saver: DeltaSaver, id: string, parent: string | undefined, text: string, newVersions: { text?: number }) {
	const config = { configurable: { thread_id: "t", checkpoint_id: parent } };
	const checkpoint = { ...emptyCheckpoint(), id, channel_values: { text }, channel_versions: { text: 1 } };
	return saver.put(config, checkpoint, { source: "loop", step: 0, parents: {} }, newVersions as { text: number });
}

it("a child of a checkpoint that another process has replaced meanwhile keeps its values", async () => {
	const folder = await mkdtemp(join(tmpdir(), "replaced-"));
	const [one, two] = [new SqliteSaver(join(folder, "t.db")), new SqliteSaver(join(folder, "t.db"))];
	const [parent, child] = [uuid6(0), uuid6(1)];
	const before = "before ".repeat(50);
	await put(one, parent, undefined, before, { text: 1 });
	await two.getTuple({ configurable: { thread_id: "t" } });
	await put(one, parent, parent, "after ".repeat(50), { text: 1 });
	await put(two, child, parent, before, {});
	expect((await two.getTuple({ configurable: { thread_id: "t" } }))?.checkpoint.channel_values).toEqual({
		text: before,
	});
	await Promise.all([one.close(), two.close()]);
	await rm(folder, { recursive: true });
});

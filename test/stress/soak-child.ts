import assert from "node:assert/strict";
import { type Checkpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "../../src/sqlite.ts";
import { Random } from "../bench/random.ts";
import { KEYS } from "./crash-orders.ts";
import { SHARED, type SoakAccount, type SoakOrders } from "./soak-orders.ts";
import { Story, type Teller } from "./story.ts";

const SHARE_EVERY = 10;
const READ_EVERY = 3;

const orders = JSON.parse(process.argv[2] ?? "{}") as SoakOrders;
const story = new Story(orders.seed, orders.prefix);
const random = new Random(orders.seed ^ 0x2545f491);
const shared: [string, string][] = [];
let current: keyof typeof KEYS = "odd";
let reads = 0;

const open = () => new SqliteSaver(orders.path, { encryption: { keys: KEYS, current }, cacheBytes: 1_000_000 });
const teller: Teller = {
	saver: open(),
	backupPath: `${orders.path}.${orders.prefix}backup`,
	async changeKey() {
		await this.saver.close();
		current = current === "odd" ? "even" : "odd";
		this.saver = open();
	},
};

/** Goes on from whatever is the newest of a thread in which all do so. */
async function share(n: number): Promise<void> {
	const head = await teller.saver.getTuple({ configurable: { thread_id: SHARED } });
	const parent = head?.checkpoint.id;
	const text = `${orders.prefix}${n}`;
	const checkpoint: Checkpoint = {
		v: 4,
		id: uuid6(n),
		ts: new Date().toISOString(),
		channel_values: { text },
		channel_versions: { text: n + 1 },
		versions_seen: {},
	};
	const config = { configurable: { thread_id: SHARED, checkpoint_ns: "", checkpoint_id: parent } };
	await teller.saver.put(config, checkpoint, { source: "loop", step: n, parents: {} }, { text: n + 1 });
	shared.push([checkpoint.id, text]);
}

/** What another process is writing, pruning or deleting at this moment is whole whenever it is read. */
async function read(): Promise<void> {
	const { threads } = new Story(0, random.pick(orders.peers));
	for await (const { checkpoint } of teller.saver.list(
		{ configurable: { thread_id: random.pick(threads) } },
		{ limit: 5 },
	)) {
		const { messages, count } = checkpoint.channel_values as { messages: string[]; count: number };
		assert.ok(messages.at(-1)?.startsWith(`${count} `), `checkpoint ${checkpoint.id} is not whole`);
		reads++;
	}
}

const end = performance.now() + orders.seconds * 1000;
let done = 0;
for (; performance.now() < end; done++) {
	const happening = story.next();
	await happening.run(teller);
	happening.apply(story.model);
	if (done % SHARE_EVERY === 0) await share(done);
	if (done % READ_EVERY === 0) await read();
}
await teller.saver.close();
process.stdout.write(JSON.stringify({ done, shared, reads } satisfies SoakAccount));

import { setTimeout } from "node:timers/promises";
import { PostgresSaver } from "../../../src/postgres.ts";
import { Random } from "../../bench/random.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { findFaults, write } from "./load.ts";

const WRITERS = 6;
/** Calls that must have come through between two kills. */
const BETWEEN_KILLS = 30;
const WAYS = ["all", "parent", "worker"] as const;

/** What became of a server that was killed again and again while it was written to. */
export interface KillReport {
	readonly kills: number;
	readonly checkpoints: number;
	readonly writes: number;
	/** Longest time from a kill to the first call that came through after it, in milliseconds. */
	readonly longestGap: number;
	readonly faults: string[];
}

/** Kills a server under load, so many times. */
export async function killUnderLoad(kills: number, seed: number, onKill?: (done: number) => void): Promise<KillReport> {
	const random = new Random(seed);
	const server = await PostgresServer.start({ max_connections: "50" });
	try {
		// Two servers of an application, each with connections of its own.
		const savers = [0, 1].map(() => PostgresSaver.fromConnString(server.url, { retryTimeout: 60_000 }));
		let isOver = false;
		let calls = 0;
		const check = () => {
			calls++;
			return isOver;
		};
		const writers = Array.from({ length: WRITERS }, (_, n) =>
			write(savers[n % 2] as PostgresSaver, `writer ${n}`, check),
		);
		let longestGap = 0;
		for (let done = 0; done < kills; done++) {
			const before = calls;
			while (calls < before + BETWEEN_KILLS) await setTimeout(2);
			await setTimeout(random.below(30));
			const killed = performance.now();
			await server.crash(WAYS[done % WAYS.length] as (typeof WAYS)[number]);
			const restarted = calls;
			while (calls === restarted) await setTimeout(1);
			longestGap = Math.max(longestGap, performance.now() - killed);
			onKill?.(done + 1);
		}
		isOver = true;
		const done = await Promise.all(writers);
		const reader = PostgresSaver.fromConnString(server.url);
		const faults = await findFaults(reader, done);
		for (const saver of [...savers, reader]) await saver.close();
		const count = (of: "checkpoints" | "writes") => done.reduce((sum, one) => sum + one[of].length, 0);
		return { kills, checkpoints: count("checkpoints"), writes: count("writes"), longestGap, faults };
	} finally {
		await server.stop();
	}
}

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runSaverContract } from "../../src/contract.ts";
import { MemorySaver } from "../../src/index.ts";
import { SqliteSaver } from "../../src/sqlite.ts";

const test = { describe, it };

runSaverContract({
	name: "MemorySaver",
	test,
	setup: async ({ serde }) => ({ saver: new MemorySaver(serde) }),
});

// On ":memory:" it is encrypted as well, among the suites of encryption.
runSaverContract({
	name: "SqliteSaver on a file",
	test,
	setup: async ({ serde }) => {
		const directory = await mkdtemp(join(tmpdir(), "contract-"));
		const open = () => new SqliteSaver(join(directory, "checkpoints.db"), { serde });
		return {
			saver: open(),
			reopen: async () => open(),
			teardown: () => rm(directory, { recursive: true }),
		};
	},
});

describe("await using", () => {
	for (const open of [() => new MemorySaver(), () => new SqliteSaver(":memory:")])
		it(`closes a ${open().constructor.name} at the end of its block`, async () => {
			let left: MemorySaver | SqliteSaver;
			{
				await using saver = open();
				left = saver;
				await expect(saver.stats()).resolves.toBeDefined();
			}
			await expect(left.stats()).rejects.toMatchObject({ code: "CLOSED" });
		});
});

describe("the contract suite", () => {
	const contract = { name: "no saver", test, setup: async () => ({ saver: new MemorySaver() }) };

	it("takes no skip without a reason", () => {
		expect(() => runSaverContract({ ...contract, skip: [{ rule: "LIST-3", reason: " " }] })).toThrow("reason");
	});

	it("takes no skip of a rule that it does not have", () => {
		expect(() => runSaverContract({ ...contract, skip: [{ rule: "LIST-33", reason: "not there" }] })).toThrow(
			"LIST-33",
		);
	});

	it("skips a rule, or one test of a rule, and says why", () => {
		const ran: string[] = [];
		const skipped: string[] = [];
		const spy = Object.assign((name: string) => ran.push(name), { skip: (name: string) => skipped.push(name) });
		const skip = [
			{ rule: "SER-4", reason: "JSON only" },
			{ rule: "PUT-1: the parent is the checkpoint named in the config", reason: "for now" },
		];
		runSaverContract({ ...contract, test: { describe: (_, body) => body(), it: spy }, skip });
		expect(skipped.every((name) => name.startsWith("SER-4: ") || name.startsWith("PUT-1: "))).toBe(true);
		expect(skipped).toContain("PUT-1: the parent is the checkpoint named in the config (skipped: for now)");
		expect(ran.some((name) => name.startsWith("SER-4: "))).toBe(false);
		expect(ran.some((name) => name.startsWith("PUT-1: "))).toBe(true);
	});

	it("names every test once", () => {
		const names: string[] = [];
		const spy = Object.assign((name: string) => names.push(name), { skip: () => {} });
		runSaverContract({ ...contract, test: { describe: (_, body) => body(), it: spy } });
		expect(new Set(names).size).toBe(names.length);
	});
});

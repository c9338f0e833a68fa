import { IdStash } from "../../src/storage/id-stash.ts";

/** Counts up like a database, some time after it is asked. */
function counter() {
	const asked: number[] = [];
	let next = 1;
	const reserve = async (count: number) => {
		asked.push(count);
		await new Promise((resolve) => setTimeout(resolve, 1));
		next += count;
		return next - count;
	};
	return { asked, reserve };
}

describe("IdStash", () => {
	it("never hands out a number twice, whatever is asked for at once", async () => {
		const stash = new IdStash(counter().reserve);
		const seen = new Set<number>();
		let total = 0;
		for (let round = 0; round < 30; round++) {
			const counts = Array.from({ length: 40 }, (_, n) => 1 + ((n * 37 + round * 11) % (n === 7 ? 5_000 : 300)));
			const firsts = await Promise.all(counts.map((count) => stash.take(count)));
			for (const [n, first] of firsts.entries()) for (let i = 0; i < (counts[n] as number); i++) seen.add(first + i);
			total += counts.reduce((sum, count) => sum + count, 0);
		}
		expect(seen.size).toBe(total);
	});

	it("asks for the next numbers before the last ones are used up", async () => {
		const { asked, reserve } = counter();
		const stash = new IdStash(reserve);
		await stash.take(1);
		expect(asked).toHaveLength(1);
		for (let n = 0; n < 13; n++) await stash.take(256);
		expect(asked).toHaveLength(2);
	});

	it("asks again where it was refused", async () => {
		let refusals = 1;
		const { reserve } = counter();
		const stash = new IdStash((count) => (refusals-- > 0 ? Promise.reject(new Error("no")) : reserve(count)));
		await expect(stash.take(1)).rejects.toThrow("no");
		await stash.take(256);
		refusals = 1;
		const numbers: number[] = [];
		for (let n = 0; n < 40; n++) numbers.push(await stash.take(256));
		expect(new Set(numbers).size).toBe(40);
	});
});

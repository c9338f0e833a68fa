import { Home, Memo, type Recorder } from "./memo.ts";
import { ReadMembers } from "./read-members.ts";

/** Up to so many objects a look at each of them beats a hash. */
const FEW = 12;

/**
 * Remembers the bytes of members of arrays and objects that were encoded before, with what must not have changed since.
 *
 * A conversation is encoded at every step, and all but its last messages are the same objects as the step before. To
 * walk through an object and compare what it holds is several times as quick as to encode it, and needs no trust: a
 * change in place, at any depth, is seen.
 *
 * To note all that a member holds takes longer than to encode it, so that this is done only when it comes the second
 * time, or was read by somebody who is about to go on with it. A member is remembered only if it stands for itself: made
 * of plain objects, arrays, messages and primitive values, none of them part of another member. Memos live as long as the
 * members do.
 */
export class ElementMemos {
	readonly #known = new WeakMap<object, Memo | ReadMembers | "met" | "never">();
	readonly #used: Memo[] = [];
	readonly #usedTwice: Memo[] = [];
	readonly #made: Memo[] = [];
	#pass = 0;
	/** Where the last one that was found is, and whether its bytes are still there. */
	#home: Home | undefined;
	#isHomeThere = false;

	/** Begins with a value. */
	begin(): void {
		this.#pass++;
		this.#clear();
	}

	/** Lets go of the members of a value, which may be all that holds them. */
	#clear(): void {
		if (this.#used.length > 0) this.#used.length = 0;
		if (this.#usedTwice.length > 0) this.#usedTwice.length = 0;
		if (this.#made.length > 0) this.#made.length = 0;
		this.#home = undefined;
	}

	/** Whether anything in the value was taken from memory. */
	get wereUsed(): boolean {
		return this.#used.length > 0;
	}

	/** What is remembered of a member, if it is still true. */
	find(member: object): Memo | undefined {
		const memo = this.#findKnown(member);
		if (!(memo instanceof Memo)) return undefined;
		if (!memo.isCurrent()) {
			// What changes in place will do so again, and is not worth the trouble.
			this.#known.set(member, "never");
			return undefined;
		}
		// Whoever kept the value did so no longer. What is found here stays until the present call is done.
		if (!this.#isThere(memo.home)) {
			this.#known.set(member, "met");
			return undefined;
		}
		(memo.usedIn === this.#pass ? this.#usedTwice : this.#used).push(memo);
		memo.usedIn = this.#pass;
		return memo;
	}

	#findKnown(member: object): Memo | "met" | "never" | undefined {
		const known = this.#known.get(member);
		if (!(known instanceof ReadMembers)) return known;
		this.#known.set(member, "met");
		for (const memo of known.memos()) this.#known.set(memo.member, memo);
		return this.#known.get(member) as Memo | "met";
	}

	#isThere(home: Home): boolean {
		if (home !== this.#home) {
			this.#home = home;
			this.#isHomeThere = home.bytes.deref() !== undefined;
		}
		return this.#isHomeThere;
	}

	/** Whether a member was there before, in any value. */
	hasMet(member: unknown): boolean {
		return typeof member === "object" && member !== null && this.#known.has(member);
	}

	/** Like {@link hasMet}; from now on it was. */
	meet(member: unknown): boolean {
		if (typeof member !== "object" || member === null) return false;
		if (this.#known.has(member)) return true;
		this.#known.set(member, "met");
		return false;
	}

	/** Whether a member can be remembered, as far as is known. */
	canRecord(member: object): boolean {
		return this.#known.get(member) !== "never";
	}

	/** Keeps what was recorded while a member was encoded. */
	keep(member: object, recorder: Recorder, start: number, length: number): void {
		if (!recorder.isWhole) return void this.#known.set(member, "never");
		const memo = new Memo(member, length, recorder.held);
		memo.next = start;
		this.#made.push(memo);
	}

	/**
	 * The same for members that were read, one after the other. Most values are read for their own sake: that they are known
	 * is found out with the first one.
	 */
	keepRead(members: ReadMembers): void {
		if (members.first !== undefined) this.#known.set(members.first, members);
	}

	/**
	 * Looks back at a value that was written. Answers false if a member that was taken from memory has an object in common
	 * with another one, so that the bytes are not what they should be.
	 *
	 * @param others the objects that were not taken from memory
	 */
	check(others: ReadonlySet<object>): boolean {
		const shared = new Set(this.#usedTwice);
		if (!this.#wereTogether()) this.#findShared(others, shared);
		else {
			const has = others.size <= FEW ? among([...others]) : (object: object) => others.has(object);
			for (const memo of this.#used) if (memo.hasAny(has)) shared.add(memo);
		}
		for (const { member } of shared) this.#known.set(member, "never");
		return shared.size === 0;
	}

	/**
	 * Ends with a value: its members are found in these bytes from now on.
	 *
	 * @param continued where those of the value are that it goes on from
	 */
	end(bytes: Uint8Array, continued: Home | undefined): void {
		if (this.#used.length === 0 && this.#made.length === 0) return;
		const home = continued ?? new Home(bytes);
		continued?.move(bytes);
		for (const memo of this.#used) if (memo.home !== home) memo.settle(home);
		for (const memo of this.#made) {
			memo.settle(home);
			this.#known.set(memo.member, memo);
		}
		this.#clear();
	}

	/** Whether all were last used for one value: then they had nothing in common, and did not change since. */
	#wereTogether(): boolean {
		const home = this.#used[0]?.home;
		return this.#used.every((memo) => memo.home === home);
	}

	#findShared(written: ReadonlySet<object>, shared: Set<Memo>): void {
		const holders = new Map<object, Memo | undefined>();
		for (const object of written) holders.set(object, undefined);
		for (const memo of this.#used)
			for (const object of memo.objects()) {
				if (!holders.has(object)) holders.set(object, memo);
				else for (const one of [memo, holders.get(object)]) if (one !== undefined) shared.add(one);
			}
	}
}

function among(few: readonly object[]): (object: object) => boolean {
	return (object) => {
		for (let i = 0; i < few.length; i++) if (few[i] === object) return true;
		return false;
	};
}

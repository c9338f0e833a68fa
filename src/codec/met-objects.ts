/** Up to so many objects a look at each of them beats a hash. */
const FEW = 24;

/** The objects that were met in a value. */
export class MetObjects {
	/** The first of them, and all once they are more than a few. */
	readonly #few: (object | undefined)[] = new Array(FEW).fill(undefined);
	#fewCount = 0;
	#all: Set<object> | undefined;

	/** Answers false if it was met before. */
	add(object: object): boolean {
		if (this.#all !== undefined) {
			const { size } = this.#all;
			return this.#all.add(object).size > size;
		}
		const few = this.#few;
		const count = this.#fewCount;
		for (let i = 0; i < count; i++) if (few[i] === object) return false;
		if (count === FEW) {
			this.#all = new Set(few as object[]);
			this.#all.add(object);
		} else {
			few[count] = object;
			this.#fewCount = count + 1;
		}
		return true;
	}

	delete(object: object): void {
		this.#all?.delete(object);
		const i = this.#few.indexOf(object);
		if (i < 0) return;
		this.#fewCount--;
		this.#few[i] = this.#few[this.#fewCount];
		this.#few[this.#fewCount] = undefined;
	}

	toSet(): ReadonlySet<object> {
		return this.#all ?? new Set(this.#few.slice(0, this.#fewCount) as object[]);
	}

	/** Lets go of all of them: what was met may be large. */
	clear(): void {
		this.#all = undefined;
		for (let i = 0; i < this.#fewCount; i++) this.#few[i] = undefined;
		this.#fewCount = 0;
	}
}

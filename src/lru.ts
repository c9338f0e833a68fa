type SharingMap = Pick<Lru<unknown, unknown>, "weight" | "forgetOldest">;

/** What several maps may weigh together. */
export class Budget {
	readonly limit: number;
	readonly #maps: SharingMap[] = [];
	#weight = 0;

	constructor(limit: number) {
		this.limit = limit;
	}

	share(map: SharingMap): void {
		this.#maps.push(map);
	}

	/** Adds to what they weigh. If that is too much, the heaviest gives way. */
	add(weight: number): void {
		this.#weight += weight;
		while (this.#weight > this.limit) this.#maps.reduce((a, b) => (b.weight > a.weight ? b : a)).forgetOldest();
	}
}

/** A map that forgets what was used longest ago once its entries weigh more than a limit. */
export class Lru<K, V> {
	readonly #entries = new Map<K, { value: V; weight: number }>();
	readonly #limit: number;
	readonly #budget: Budget | undefined;
	#weight = 0;

	/** @param limit a number, or what it shares with others */
	constructor(limit: number | Budget) {
		this.#budget = limit instanceof Budget ? limit : undefined;
		this.#limit = limit instanceof Budget ? limit.limit : limit;
		this.#budget?.share(this);
	}

	/** Total weight of what is held; never above the limit. */
	get weight(): number {
		return this.#weight;
	}

	get(key: K): V | undefined {
		const entry = this.#entries.get(key);
		if (entry === undefined) return undefined;
		this.#entries.delete(key);
		this.#entries.set(key, entry);
		return entry.value;
	}

	/** Like {@link get}, but does not count as use. */
	peek(key: K): V | undefined {
		return this.#entries.get(key)?.value;
	}

	set(key: K, value: V, weight: number): void {
		this.delete(key);
		if (weight > this.#limit) return;
		this.#entries.set(key, { value, weight });
		this.#weight += weight;
		while (this.#weight > this.#limit) this.forgetOldest();
		this.#budget?.add(weight);
	}

	/** Like {@link set}, but does not count as use of what is there. */
	replace(key: K, value: V, weight: number): void {
		const entry = this.#entries.get(key);
		if (entry === undefined || weight > this.#limit) return this.set(key, value, weight);
		const more = weight - entry.weight;
		entry.value = value;
		entry.weight = weight;
		this.#weight += more;
		while (this.#weight > this.#limit) this.forgetOldest();
		this.#budget?.add(more);
	}

	forgetOldest(): void {
		for (const oldest of this.#entries.keys()) return this.delete(oldest);
	}

	delete(key: K): void {
		const entry = this.#entries.get(key);
		if (entry === undefined) return;
		this.#entries.delete(key);
		this.#weight -= entry.weight;
		this.#budget?.add(-entry.weight);
	}

	clear(): void {
		this.#entries.clear();
		this.#budget?.add(-this.#weight);
		this.#weight = 0;
	}
}

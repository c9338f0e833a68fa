/** A map that forgets what was used longest ago once its entries weigh more than a limit. */
export class Lru<K, V> {
	readonly #entries = new Map<K, { value: V; weight: number }>();
	readonly #limit: number;
	#weight = 0;

	constructor(limit: number) {
		this.#limit = limit;
	}

	get(key: K): V | undefined {
		const entry = this.#entries.get(key);
		if (entry === undefined) return undefined;
		this.#entries.delete(key);
		this.#entries.set(key, entry);
		return entry.value;
	}

	set(key: K, value: V, weight: number): void {
		this.delete(key);
		if (weight > this.#limit) return;
		this.#entries.set(key, { value, weight });
		this.#weight += weight;
		while (this.#weight > this.#limit) this.delete(this.#entries.keys().next().value as K);
	}

	delete(key: K): void {
		const entry = this.#entries.get(key);
		if (entry === undefined) return;
		this.#entries.delete(key);
		this.#weight -= entry.weight;
	}

	clear(): void {
		this.#entries.clear();
		this.#weight = 0;
	}
}

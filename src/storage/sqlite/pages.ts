import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { inspectWal, readFrames } from "./wal.ts";

/** What SQLite gives a new database, and so every file of ours. */
const DEFAULT_PAGE_SIZE = 4096;
const FILE_HEADER_BYTES = 100;

/** Kinds of pages of a tree, by their first byte. */
const TABLE_INTERIOR = 5;
const TABLE_LEAF = 13;
const INDEX_INTERIOR = 2;
const INDEX_LEAF = 10;

/** A column of a record. */
export type Value = null | number | string | Buffer;

/** A record as it stands on a page. */
export interface SqliteRecord {
	/** Only rows of ordinary tables have one. */
	readonly rowid: number | undefined;
	readonly values: readonly Value[];
}

/** A tree of pages: a table or an index. */
interface Tree {
	readonly name: string;
	readonly root: number;
}

/**
 * The pages of a database file with its log, read without SQLite: for files that SQLite can't read any more.
 *
 * Follows https://sqlite.org/fileformat2.html. Nothing is trusted: what does not fit is left out.
 */
export class SqlitePages {
	readonly #file: number;
	/** Newer pages, from the log. */
	readonly #newer = new Map<number, Uint8Array>();
	readonly #size: number;
	readonly count: number;

	constructor(path: string) {
		this.#file = openSync(path, "r");
		const log = `${path}-wal`;
		const { evident } = inspectWal(log);
		for (const { page, data } of readFrames(log, evident)) this.#newer.set(page, data);
		const [newer] = this.#newer.values();
		const { size } = fstatSync(this.#file);
		this.#size = newer?.length ?? this.#readPageSize(size);
		let count = Math.floor(size / this.#size);
		// A frame adds one page at most: a greater number is damaged.
		const most = count + evident;
		for (const page of this.#newer.keys()) if (page <= most) count = Math.max(count, page);
		this.count = count;
	}

	close(): void {
		closeSync(this.#file);
	}

	#readPageSize(fileSize: number): number {
		const header = Buffer.alloc(FILE_HEADER_BYTES);
		readSync(this.#file, header, 0, FILE_HEADER_BYTES, 0);
		const stored = header.readUInt16BE(16);
		const size = stored === 1 ? 65536 : stored;
		const isSound = size >= 512 && Number.isInteger(Math.log2(size)) && fileSize % size === 0;
		return isSound ? size : DEFAULT_PAGE_SIZE;
	}

	#page(number: number): Buffer | undefined {
		if (!Number.isInteger(number) || number < 1 || number > this.count) return undefined;
		const newer = this.#newer.get(number);
		if (newer !== undefined) return Buffer.from(newer.buffer, newer.byteOffset, newer.length);
		const page = Buffer.alloc(this.#size);
		readSync(this.#file, page, 0, this.#size, (number - 1) * this.#size);
		return page;
	}

	/**
	 * Every record that may be a row of a table: those of pages that trees lead to first. Of the others only if a tree is
	 * broken, and without pages that are known to be free, on which removed rows may still stand.
	 */
	*records(): Generator<SqliteRecord> {
		const reached = new Set<number>();
		let isBroken = false;
		const trees = this.#trees();
		if (trees.length === 0) isBroken = true;
		for (const { root } of trees) if (!this.#walk(root, reached)) isBroken = true;
		for (const page of reached) yield* this.#recordsOn(page);
		// Without any tree it is everything or nothing, and removed rows may come back with the others.
		const free = isBroken ? (this.#freePages() ?? (trees.length === 0 ? new Set<number>() : undefined)) : undefined;
		if (free === undefined) return;
		for (let page = 1; page <= this.count; page++)
			if (!reached.has(page) && !free.has(page)) yield* this.#recordsOn(page);
	}

	/** Records of one index or table, as far as its tree leads. */
	*recordsOf(name: string): Generator<SqliteRecord> {
		const tree = this.#trees().find((one) => one.name === name);
		const reached = new Set<number>();
		if (tree !== undefined) this.#walk(tree.root, reached);
		for (const page of reached) yield* this.#recordsOn(page);
	}

	/** What the schema, on the first page, says there is. */
	#trees(): Tree[] {
		const reached = new Set<number>();
		this.#walk(1, reached);
		const rows = [...reached].flatMap((page) => [...this.#recordsOn(page)]);
		return rows.flatMap(({ values }) => {
			const [, name, , root] = values;
			return typeof name === "string" && typeof root === "number" && root > 1 ? [{ name, root }] : [];
		});
	}

	/** Adds the pages of a tree. Answers whether it is whole, as far as can be seen without looking at records. */
	#walk(root: number, reached: Set<number>): boolean {
		let isWhole = true;
		const open = [root];
		for (let number = open.pop(); number !== undefined; number = open.pop()) {
			const page = reached.has(number) ? undefined : this.#page(number);
			const header = page && readHeader(page, number);
			if (page === undefined || header === undefined) {
				isWhole = false;
				continue;
			}
			reached.add(number);
			if (header.kind === TABLE_LEAF || header.kind === INDEX_LEAF) continue;
			open.push(page.readUInt32BE(header.start + 8));
			for (const cell of cellsOf(page, header)) open.push(page.readUInt32BE(cell));
			if (cellsOf(page, header).length < header.cells) isWhole = false;
		}
		return isWhole;
	}

	/** Pages that the list of free pages names; `undefined` if that is damaged. */
	#freePages(): Set<number> | undefined {
		const free = new Set<number>();
		let next = this.#page(1)?.readUInt32BE(32) ?? 0;
		while (next !== 0) {
			const trunk = free.has(next) ? undefined : this.#page(next);
			const count = trunk?.readUInt32BE(4) ?? Number.POSITIVE_INFINITY;
			if (trunk === undefined || count > this.#size / 4 - 2) return undefined;
			free.add(next);
			for (let i = 0; i < count; i++) free.add(trunk.readUInt32BE(8 + 4 * i));
			next = trunk.readUInt32BE(0);
		}
		return free;
	}

	*#recordsOn(number: number): Generator<SqliteRecord> {
		const page = this.#page(number);
		const header = page && readHeader(page, number);
		if (page === undefined || header === undefined || header.kind === TABLE_INTERIOR) return;
		for (const cell of cellsOf(page, header)) {
			const record = this.#readCell(page, header.kind, cell);
			if (record !== undefined) yield record;
		}
	}

	#readCell(page: Buffer, kind: number, cell: number): SqliteRecord | undefined {
		try {
			const reader = new Reader(page, kind === INDEX_INTERIOR ? cell + 4 : cell);
			const length = reader.varint();
			const rowid = kind === TABLE_LEAF ? reader.varint() : undefined;
			const payload = this.#readPayload(page, reader.at, length, kind === TABLE_LEAF);
			return payload && { rowid, values: readValues(payload) };
		} catch (error) {
			// Lengths and places that lead outside of the page.
			if (error instanceof RangeError) return undefined;
			throw error;
		}
	}

	/** The bytes of a record: on its page, and on others if they don't fit there. */
	#readPayload(page: Buffer, start: number, length: number, isTable: boolean): Buffer | undefined {
		const local = this.#localLength(length, isTable);
		if (local > page.length - start || length > this.count * this.#size) return undefined;
		const parts = [page.subarray(start, start + local)];
		let left = length - local;
		let next = left > 0 ? page.readUInt32BE(start + local) : 0;
		while (left > 0) {
			const more = this.#page(next);
			if (more === undefined) return undefined;
			const part = more.subarray(4, 4 + Math.min(left, this.#size - 4));
			parts.push(part);
			left -= part.length;
			next = more.readUInt32BE(0);
		}
		return parts.length === 1 ? parts[0] : Buffer.concat(parts);
	}

	#localLength(length: number, isTable: boolean): number {
		const size = this.#size;
		const most = isTable ? size - 35 : Math.floor(((size - 12) * 64) / 255) - 23;
		if (length <= most) return length;
		const least = Math.floor(((size - 12) * 32) / 255) - 23;
		const local = least + ((length - least) % (size - 4));
		return local <= most ? local : least;
	}
}

interface PageHeader {
	readonly kind: number;
	readonly start: number;
	readonly cells: number;
}

function readHeader(page: Buffer, number: number): PageHeader | undefined {
	const start = number === 1 ? FILE_HEADER_BYTES : 0;
	const kind = page[start] as number;
	if (![TABLE_INTERIOR, TABLE_LEAF, INDEX_INTERIOR, INDEX_LEAF].includes(kind)) return undefined;
	return { kind, start, cells: page.readUInt16BE(start + 3) };
}

/** Where the cells of a page begin: those that are on it. */
function cellsOf(page: Buffer, { kind, start, cells }: PageHeader): number[] {
	const first = start + (kind === TABLE_LEAF || kind === INDEX_LEAF ? 8 : 12);
	const places: number[] = [];
	for (let i = 0; i < cells && first + 2 * i + 2 <= page.length; i++) {
		const place = page.readUInt16BE(first + 2 * i);
		if (place >= first && place + 4 <= page.length) places.push(place);
	}
	return places;
}

function readValues(payload: Buffer): Value[] {
	const header = new Reader(payload, 0);
	const end = header.varint();
	const body = new Reader(payload, end);
	const values: Value[] = [];
	while (header.at < end) values.push(body.value(header.varint()));
	return values;
}

/** Reads one thing after the other. Throws a RangeError at the end of the bytes. */
class Reader {
	readonly #bytes: Buffer;
	at: number;

	constructor(bytes: Buffer, at: number) {
		this.#bytes = bytes;
		this.at = at;
	}

	varint(): number {
		let value = 0n;
		for (let i = 0; i < 9; i++) {
			const byte = this.#bytes.readUInt8(this.at++);
			if (i === 8) value = (value << 8n) | BigInt(byte);
			else value = (value << 7n) | BigInt(byte & 0x7f);
			if (byte < 0x80) break;
		}
		return Number(BigInt.asIntN(64, value));
	}

	/** @param type as the header of a record has it: which type, and how long */
	value(type: number): Value {
		if (type === 0) return null;
		if (type === 8 || type === 9) return type - 8;
		if (type === 7) return this.#take(8).readDoubleBE();
		if (type <= 6) return this.#integer([0, 1, 2, 3, 4, 6, 8][type] as number);
		const bytes = this.#take(Math.floor((type - 12) / 2));
		return type % 2 === 0 ? bytes : bytes.toString();
	}

	#integer(length: number): number {
		const bytes = this.#take(length);
		return length <= 6 ? bytes.readIntBE(0, length) : Number(bytes.readBigInt64BE());
	}

	#take(length: number): Buffer {
		if (length < 0 || this.at + length > this.#bytes.length) throw new RangeError("There are not so many bytes");
		this.at += length;
		return this.#bytes.subarray(this.at - length, this.at);
	}
}

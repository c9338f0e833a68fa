import { uuid5 } from "@langchain/langgraph-checkpoint";
import type { WriteRow } from "../../storage/storage.ts";
import type { Head, Origin } from "../head.ts";
import { compareTasks, visibleWrites } from "../rows.ts";

/** What the attribution of writes must know of a checkpoint. A `__copy__` has the actor of its original. */
export interface PathCheckpoint extends Omit<Origin, "copyOf">, Pick<Head, "versions"> {
	readonly id: string;
	readonly parentId?: string | undefined;
	/** `metadata.source` and `metadata.step`. */
	readonly source: string | undefined;
	readonly step: number | undefined;
}

/** What the attribution of writes must know of a write. By its task path it also tells by whose rules it was stored. */
export interface StoredWrite extends Pick<WriteRow, "taskId" | "taskPath" | "idx" | "channel" | "generation"> {
	/** Greater numbers are of later runs and updates; `undefined` if not known. */
	readonly actor?: number | undefined;
}

export interface AttributionInput<W extends StoredWrite> {
	readonly parent: PathCheckpoint;
	readonly child: PathCheckpoint;
	/** The other children of the parent. */
	readonly siblings: readonly PathCheckpoint[];
	readonly channel: string;
	/** All writes stored at the parent, of every channel, in any order. */
	readonly writes: readonly W[];
	/** The child's own writes: those of {@link attributeOwnWrites}. */
	readonly own?: readonly W[] | undefined;
	/** Task ids that have writes at the parent's own parent. Such tasks can't be the parent's. */
	readonly inherited?: ReadonlySet<string> | undefined;
}

export const NULL_TASK = "00000000-0000-0000-0000-000000000000";

/** Exit durability files the writes of all supersteps under one checkpoint, with the step in place of a task id's first group. */
const EXIT_TASK = /^(\d{8}|0*-\d+)-/;
/** LangGraph 1.5 and later do so only in the first superstep of a run; afterwards the step is in the two groups that follow. */
const LATE_EXIT_TASK = /^f{8}-([0-9a-f]{4})-([0-9a-f]{4})-/;

/** How many supersteps of one run in exit durability are recognised: those of most runs, and few of all random ids. */
const EXIT_STEPS = 1000;

/**
 * The writes stored at `parent` that made `child`'s value of `channel`, oldest first.
 *
 * A checkpoint can have several children: runs that were started from it again, state updates, new inputs over an
 * unfinished superstep. The writes of all of them are stored in one pool at the parent; this finds those of one child.
 */
export function attributeWrites<W extends StoredWrite>(input: AttributionInput<W>): W[] {
	const { child, channel, own = [] } = input;
	const original = findOriginal(input);
	if (original) {
		const siblings = input.siblings.filter((other) => other !== original);
		return attributeWrites({ ...input, child: original, siblings });
	}
	// What a run was told at its start is stored in one place.
	if (child.source === "input" && own.length > 0) return [];
	const pool = new WritePool(input);
	const made = pool.isOfPaths ? pool.ofPaths() : child.source === "update" ? pool.ofUpdate() : pool.ofRun();
	return made.filter((write) => write.channel === channel);
}

/**
 * The writes stored at a checkpoint that are part of its own value, not of its children's, oldest first.
 *
 * An update as `__input__` stores its input there. So does a run in exit durability that was given a `Command` with an
 * update, if it ends before a superstep does.
 */
export function attributeOwnWrites<W extends StoredWrite>(input: {
	readonly checkpoint: PathCheckpoint;
	/** The next checkpoint of the path; `undefined` at its end. */
	readonly child?: PathCheckpoint | undefined;
	readonly channel: string;
	/** All writes stored at the checkpoint, in any order. */
	readonly writes: readonly W[];
}): W[] {
	const { checkpoint, child, channel, writes } = input;
	const { source, actor } = checkpoint;
	// A child that is older than a later put has nothing of it.
	const again = (checkpoint.again ?? []).filter((later) => later <= (child?.actor ?? Infinity));
	const actors = source === "input" && actor !== undefined ? [actor, ...again] : again;
	const inputTask = inputTaskId(checkpoint);
	return inOrder(writes).filter(
		(write) =>
			write.channel === channel &&
			(write.taskId === inputTask || (write.taskId === NULL_TASK && actors.includes(write.actor ?? Number.NaN))),
	);
}

/**
 * The writes that made the value of a checkpoint without a parent: the first input of a thread is stored under the id of
 * an empty checkpoint that is never put.
 */
export function attributeOrphans<W extends StoredWrite & { readonly id: string }>(input: {
	readonly root: PathCheckpoint;
	readonly channel: string;
	/** Writes of the namespace whose checkpoint has no row, in any order. */
	readonly writes: readonly W[];
}): W[] {
	const { root, channel } = input;
	const mine = input.writes.filter(
		(write) => write.id < root.id && write.taskId === NULL_TASK && write.actor === root.actor,
	);
	const nearest = mine
		.map(({ id }) => id)
		.sort()
		.at(-1);
	return inOrder(mine.filter((write) => write.id === nearest && write.channel === channel));
}

/** What {@link absorbedTasks} must know of a checkpoint. */
export interface TaskState {
	readonly versions: Readonly<Record<string, string | number>>;
	readonly seen: Readonly<Record<string, Readonly<Record<string, string | number>>>>;
	/** Equal for equal stored values of a channel, `undefined` without one. */
	value(channel: string): unknown;
}

/**
 * Whether an update took over tasks of its parent that had finished while others had not.
 *
 * Core applies their writes without a new version, so the versions do not tell. Two things do: their nodes have seen
 * more than before, and the packets that were sent to them are gone although the version of the channel is the same.
 */
export function absorbedTasks(parent: TaskState, update: TaskState): boolean {
	const sends = "__pregel_tasks";
	const consumed = parent.versions[sends] === update.versions[sends] && parent.value(sends) !== update.value(sends);
	if (consumed) return true;
	return Object.entries(update.seen).some(([node, seen]) =>
		Object.entries(seen).some(([channel, version]) => parent.seen[node]?.[channel] !== version),
	);
}

class WritePool<W extends StoredWrite> {
	readonly #parent: PathCheckpoint;
	readonly #child: PathCheckpoint;
	readonly #siblings: readonly PathCheckpoint[];
	readonly #channel: string;
	/** Without those of tasks that can't be the parent's. */
	readonly #writes: readonly W[];
	readonly #updateTask: string;
	readonly #inputTask: string;
	readonly #foreignTails: Set<string>;

	constructor(input: AttributionInput<W>) {
		this.#parent = asSeenBy(input.child, input.parent);
		this.#child = input.child;
		this.#siblings = input.siblings;
		this.#channel = input.channel;
		const inherited = [...(input.inherited ?? []), inputTaskId(input.parent) ?? ""];
		const foreign = new Set(inherited.filter((taskId) => !isCommand(taskId)));
		this.#foreignTails = new Set([...foreign].map(taskTail));
		this.#writes = inOrder(input.writes.filter((write) => !foreign.has(write.taskId)));
		this.#updateTask = taskIdIn("__interrupt__", input.parent.id);
		this.#inputTask = taskIdIn("__input__", input.parent.id);
	}

	/** Whether the child was put by LangGraph 1.5 or later. */
	get isOfPaths(): boolean {
		return this.#writes.some(
			(write) =>
				(this.#isOwn(write) || this.#child.actor === undefined) &&
				(write.taskPath !== undefined || write.taskId === this.#inputTask),
		);
	}

	/**
	 * Under LangGraph 1.5 and later a child without a stored value has all that was pending when its run or update began,
	 * and all that this run or update then stored: where that is not so, they store the value. What others stored for tasks
	 * of earlier branches, or meanwhile, is not pending; what the run stored for a task takes the place of all it had.
	 */
	ofPaths(): W[] {
		if (this.#isUnchanged()) return [];
		const free = visibleWrites(this.#writes.filter((write) => !this.#isOwn(write))).filter(
			(write) => this.#madeBy(write) === undefined && !this.#isLater(write),
		);
		// Where it is not known who put the child, all that is not known to be another's may be its own.
		if (this.#child.actor === undefined) return free;
		const own = this.#writes.filter((write) => this.#isOwn(write));
		if (this.#child.source === "update") return own;
		const done = new Set(own.filter(({ idx }) => idx >= 0).map(({ taskId }) => taskTail(taskId)));
		const isPending = (write: W) =>
			(write.taskId === NULL_TASK ? this.#hasPendingCommand() : this.#isOfTask(write)) &&
			!done.has(taskTail(write.taskId));
		return inOrder([...own, ...free.filter(isPending)]);
	}

	/** Whether the run took over what an earlier `Command` had left pending; another `Command` takes its place. */
	#hasPendingCommand(): boolean {
		const resumedAt = this.#child.resumedAt?.[this.#channel];
		return resumedAt !== this.#parent.versions[this.#channel] && resumedAt !== this.#parent.resumedAt?.[this.#channel];
	}

	ofRun(): W[] {
		if (this.#isUnchanged()) return [];
		const source = this.#child.source;
		if (source === "input" || source === "fork") return [...this.#ofNullTask(), ...this.#ofInput()];
		const exit = this.#exitWrites();
		return exit.length > 0 ? exit : [...this.#ofNullTask(), ...this.#ofTasks()];
	}

	ofUpdate(): W[] {
		if (sameVersions(this.#parent.versions, this.#child.versions) && !this.#child.absorbed) return [];
		const own = this.#ownUpdate();
		const tasks = this.#tasks()
			.flatMap((task) => this.#visible(task))
			.filter((write) => !this.#isLater(write));
		const commands = this.#visible(NULL_TASK).filter((write) => !this.#isLater(write));
		const pending = [...commands, ...tasks];
		// An update as the end stores nothing of its own, and raises the versions of what it takes over.
		const isEnd = own.length === 0;
		if (this.#child.absorbed && !isEnd) return [...pending, ...own];
		const isIdle = tasks.every(({ idx }) => idx < 0);
		const isLeft = (write: W) => write.actor !== undefined && this.#madeBy(write) === undefined;
		const left = isIdle && this.#wasHead() ? commands.filter(isLeft) : [];
		if (this.#isUnchanged()) return left;
		return isEnd ? pending : [...left, ...own];
	}

	/** Where it is not known who put the child, what has the task id of an update and belongs to no other one. */
	#ownUpdate(): W[] {
		const own = this.#writes.filter((write) => this.#isOwn(write));
		if (own.length > 0) return own;
		const updates = visibleWrites(this.#writes.filter((write) => this.#isUpdate(write)));
		return updates.filter((write) => this.#madeBy(write) === undefined);
	}

	/** An update of the head does not name it, as a rule, and then core adds what a `Command` had left pending there. */
	#wasHead(): boolean {
		return this.#siblings.every((other) => other.id > this.#child.id);
	}

	/**
	 * Every applied write raises the version, though not above that which the parent got when it was put again after the
	 * child. A checkpoint without any versions was not put by a graph; one of an unknown run may lack that of the channel.
	 */
	#isUnchanged(): boolean {
		const { source, versions, actor } = this.#child;
		const isUnknown =
			Object.keys(versions).length === 0 || (actor === undefined && versions[this.#channel] === undefined);
		if (source === "loop" && isUnknown) return false;
		if (versions[this.#channel] !== this.#parent.versions[this.#channel]) return false;
		return !this.#writes.some((write) => write.channel === this.#channel && this.#isOwn(write));
	}

	#isOwn(write: W): boolean {
		return write.actor !== undefined && write.actor === this.#child.actor;
	}

	/** A run reads what is pending at its start; what it then writes for a task takes the place of all that task had. */
	#ofTask(task: string, replaces: (write: W) => boolean): W[] {
		const own = this.#writes.filter((write) => write.taskId === task && this.#isOwn(write));
		return own.some(replaces) ? own : this.#visible(task);
	}

	#ofNullTask(): W[] {
		return this.#ofTask(NULL_TASK, () => true).filter((write) => this.#isOwn(write) || this.#canRead(write));
	}

	/** What LangGraph 1.5 and later store at the parent as the input of the child, if it is not known to be another's. */
	#ofInput(): W[] {
		return this.#visible(this.#inputTask).filter((write) => this.#madeBy(write) === undefined);
	}

	/** Whether what a `Command` of another run left pending is in the child: not if this one answers an interrupt over it. */
	#canRead(command: W): boolean {
		if (this.#isLater(command)) return false;
		return this.#child.source !== "loop" || this.#child.resumedAt === undefined || this.#hasPendingCommand();
	}

	/** The other child of the parent that the run of this write put. */
	#madeBy(write: W): PathCheckpoint | undefined {
		if (write.actor === undefined) return undefined;
		const made = this.#siblings.filter((other) => other.actor === write.actor);
		return made.reduce((first, other) => (first && first.id < other.id ? first : other), made[0]);
	}

	/**
	 * Whether it was stored after the child's run or update had begun, by one that began later. A superstep only ends once all
	 * its tasks have, so that what is there of one is in the child; unless the parent was put again, with other tasks.
	 */
	#isLater(write: W): boolean {
		const { id, source, actor = Infinity } = this.#child;
		const made = this.#madeBy(write);
		if (made) return made.id > id;
		const mayBeLater = source !== "loop" || this.#parent.again?.includes(write.actor ?? -1);
		return mayBeLater === true && (write.actor ?? -1) > actor;
	}

	/** Interrupts, errors and resume values (negative indices) do not end a task. */
	#ofTasks(): W[] {
		return this.#tasks().flatMap((task) => this.#ofTask(task, (write) => write.idx >= 0));
	}

	#tasks(): string[] {
		return [...new Set(this.#writes.filter((write) => this.#isOfTask(write)).map(({ taskId }) => taskId))];
	}

	/** Whether it is what a task of the parent's superstep wrote. */
	#isOfTask(write: W): boolean {
		const { taskId } = write;
		return !isCommand(taskId) && taskId !== this.#inputTask && !this.#isUpdate(write) && !this.#isExit(write);
	}

	/** Several updates in one superstep have task ids that count up. */
	#isUpdate({ taskId, taskPath }: W): boolean {
		return taskId === this.#updateTask || taskPath?.startsWith("~__interrupt__, ") === true;
	}

	#visible(task: string): W[] {
		return visibleWrites(this.#writes.filter((write) => write.taskId === task));
	}

	#exitWrites(): W[] {
		const last = this.#child.step ?? Infinity;
		const inRange = this.#writes.filter((w) => this.#isExit(w) && this.#exitStep(w.taskId) <= last);
		const exit = this.#writes.filter((write) => inRange.includes(write) || this.#isExitNull(write));
		const own = exit.filter((write) => this.#isOwn(write));
		if (own.some((write) => inRange.includes(write))) return own.filter((write) => !this.#isStale(write, own));
		if (inRange.length === 0) return [];
		const known = this.#child.actor !== undefined && inRange.every((write) => write.actor !== undefined);
		return known ? [] : visibleWrites(exit);
	}

	#exitStep(task: string): number {
		const late = LATE_EXIT_TASK.exec(task);
		if (late) return Number.parseInt(`${late[1]}${late[2]}`, 16);
		return Number(EXIT_TASK.exec(task)?.[1]?.replace(/^0+-/, "-"));
	}

	/** Ids of other tasks are random, and may look alike; but what a run filed is of no later step than what it put. */
	#isExit(write: W): boolean {
		const { taskId } = write;
		const step = this.#exitStep(taskId);
		const steps = step - (this.#parent.step ?? -2);
		if (taskId === NULL_TASK || !(steps > 0 && steps <= EXIT_STEPS)) return false;
		const isMine = this.#isOwn(write) || this.#child.actor === undefined;
		const made = isMine ? this.#child : this.#madeBy(write);
		return step <= (made?.step ?? Infinity);
	}

	/** With step 0 in its first group the null task's id is what it was. */
	#isExitNull(write: W): boolean {
		return write.taskId === NULL_TASK && write.idx >= 0 && (this.#parent.step ?? -2) < 0;
	}

	/**
	 * A run in exit durability files once more, in its first superstep, whatever was pending at its start, and only then
	 * what it did. Of that, only tasks of the superstep with which it went straight on count.
	 */
	#isStale(write: W, own: readonly W[]): boolean {
		const tail = taskTail(write.taskId);
		if (this.#foreignTails.has(tail)) return true;
		if (isCommand(write.taskId)) return this.#isStaleCommand(write, own);
		const before = this.#filedBefore(write);
		const filed = new Set(before.filter((w) => this.#isExit(w)).map((w) => w.taskId));
		if (callOf(write, own) < filed.size) return true;
		if (before.some((w) => this.#isUpdate(w))) return true;
		return !this.#isNextStep(write) && before.some((w) => !this.#isExit(w));
	}

	/** A new input applies a command that is pending, and files it first; another command takes its place, and comes last. */
	#isStaleCommand(write: W, own: readonly W[]): boolean {
		const before = this.#filedBefore(write);
		const isPending = before.some(({ taskId, idx }) => taskId === NULL_TASK && idx >= 0);
		const isInput = this.#child.versions.__start__ !== this.#parent.versions.__start__;
		if (isPending && isInput && !this.#isNextStep(write)) return callOf(write, own) > 0;
		const filed = new Set(before.map(({ taskId }) => taskId).filter((id) => id !== NULL_TASK));
		return callOf(write, own) < filed.size;
	}

	/** Whether the run went straight on with the parent's superstep. Else its input made a step of its own. */
	#isNextStep({ taskId }: W): boolean {
		return this.#exitStep(taskId) === (this.#parent.step ?? -2) + 1;
	}

	/** What others had stored for the same task when this was filed. */
	#filedBefore(write: W): W[] {
		return this.#writes
			.filter((w) => taskTail(w.taskId) === taskTail(write.taskId) && !this.#isOwn(w) && !this.#isLater(w))
			.filter((w) => w.taskId !== write.taskId || w.generation < write.generation);
	}
}

/**
 * The checkpoint that `child` is a `__copy__` of, if it is one. Its history is the original's.
 *
 * A copy is put beside its original, one step further. The other forks are time travels, one step after their parent.
 */
export function findOriginal(input: {
	readonly child: PathCheckpoint;
	readonly parent: PathCheckpoint | undefined;
	/** The other checkpoints with the same parent, or without one. */
	readonly siblings: readonly PathCheckpoint[];
}): PathCheckpoint | undefined {
	const { child, parent, siblings } = input;
	if (child.source !== "fork" || (parent && child.step === (parent.step ?? -2) + 1)) return undefined;
	const candidates = siblings
		.filter((other) => other.id < child.id && other.step === (child.step ?? 0) - 1)
		.sort((a, b) => (a.id < b.id ? 1 : -1));
	const known = candidates.find((other) => other.actor !== undefined && other.actor === child.actor);
	return known ?? candidates.find((other) => sameVersions(other.versions, child.versions));
}

export function sameVersions(a: PathCheckpoint["versions"], b: PathCheckpoint["versions"]): boolean {
	const keys = Object.keys(a);
	return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

/** A parent as it was when a run that is older than all that put it again went on from there. */
function asSeenBy({ actor = Infinity }: PathCheckpoint, parent: PathCheckpoint): PathCheckpoint {
	const { versions, firstVersions, again = [] } = parent;
	return { ...parent, versions: firstVersions && again.every((later) => later > actor) ? firstVersions : versions };
}

/** In which of its calls for this task a run stored the write. Expects its writes in order. */
function callOf<W extends StoredWrite>(write: W, own: readonly W[]): number {
	const calls = new Set(own.filter(({ taskId }) => taskId === write.taskId).map(({ generation }) => generation));
	return [...calls].indexOf(write.generation);
}

/** By task. What a task wrote in several calls is in the order of these calls. */
function inOrder<W extends StoredWrite>(writes: readonly W[]): W[] {
	return [...writes].sort((a, b) => compareTasks(a, b) || a.generation - b.generation || a.idx - b.idx);
}

/** Whether it is the null task, also as exit durability files it, in whatever step. */
function isCommand(taskId: string): boolean {
	return /-0000-0000-0000-00000000000[01]$/.test(taskId);
}

function taskTail(taskId: string): string {
	return taskId.slice(-28);
}

/** The task of an update as `__input__` that put this checkpoint. */
function inputTaskId({ source, parentId }: PathCheckpoint): string | undefined {
	return source === "input" && parentId ? taskIdIn("__input__", parentId) : undefined;
}

/** Checkpoints that were not made by a graph may have ids that are no UUIDs; they have no such tasks. */
function taskIdIn(name: string, checkpointId: string): string {
	return /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(checkpointId) ? uuid5(name, checkpointId) : "";
}

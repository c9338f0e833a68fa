import { DirectThread, oneChannelStep } from "../direct-thread.ts";
import { measureLimit } from "../limit.ts";
import { timeReads } from "../measure.ts";
import { Random } from "../random.ts";
import { writeText } from "../samples.ts";
import { measureOn } from "../savers.ts";
import { forEachInTurns } from "../turns.ts";
import { check, type Stage, type Workload } from "../workload.ts";

interface Task {
	id: string;
	title: string;
	isDone: boolean;
	effort: number;
	children: Task[];
}

/** Each task has three children, so that seven levels are about a thousand tasks and 150 kB. */
const CHILDREN = 3;

function writePlan(random: Random, levels: number): Task {
	const children = levels === 1 ? [] : Array.from({ length: CHILDREN }, () => writePlan(random, levels - 1));
	return { id: random.hex(8), title: writeText(random, 60), isDone: false, effort: random.below(40), children };
}

/** The same plan with one task at the bottom changed; all that is beside the way there is shared. */
function changeOne(plan: Task, random: Random): Task {
	if (plan.children.length === 0) return { ...plan, isDone: true, effort: plan.effort + 1 };
	const at = random.below(plan.children.length);
	return { ...plan, children: plan.children.map((child, i) => (i === at ? changeOne(child, random) : child)) };
}

function writePlans({ quick }: Stage): Task[] {
	const random = new Random(21);
	const plans = [writePlan(random, quick ? 4 : 7)];
	while (plans.length < (quick ? 15 : 150)) plans.push(changeOne(plans.at(-1) as Task, random));
	return plans;
}

/** A plan in a channel without a reducer: each step's task writes all of it. */
export const nested: Workload = {
	name: "nested",
	title: "deep nested state, one small change per step",
	warmUpMs: 500,
	rounds: { memory: 2 },
	backends: ["sqlite", "memory", "postgres"],
	measures: {
		bytes: { title: "bytes" },
		put: { title: "put + putWrites" },
		get: { title: "getTuple of the head" },
	},
	async run(stage) {
		const plans = writePlans(stage);
		const thread = { configurable: { thread_id: "plan" } };
		return measureOn(
			stage,
			async (saver) => {
				const direct = new DirectThread(saver, "plan");
				let total = 0;
				await forEachInTurns(plans, async (plan, i) => {
					total += await direct.step(oneChannelStep("plan", plan, plans[i + 1] ?? plan));
				});
				return { put: total / plans.length };
			},
			async (saver) => {
				const found = (await saver.getTuple(thread))?.checkpoint.channel_values.plan;
				check(JSON.stringify(found) === JSON.stringify(plans.at(-1)), "the plan is another one");
				return { get: await timeReads(() => saver.getTuple(thread)) };
			},
		);
	},
	async limit(stage) {
		const plans = writePlans(stage);
		const changes = plans.slice(1).map(({ children: _, ...task }) => task);
		return measureLimit(stage, [plans[0], ...changes], plans.at(-1));
	},
};

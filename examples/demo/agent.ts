import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { z } from "zod";

const cities = ["Accra", "Bergen", "Cusco", "Dakar", "Esbjerg", "Fez", "Goa", "Hobart", "Izmir", "Jaipur"];
const winds = ["a calm", "a light breeze", "a fresh wind", "gusts", "a gale"];

export function question(day: number): string {
	return `I am in ${cities[day % cities.length]} on day ${day}. What should I wear, and do I need an umbrella?`;
}

/** Stands in for the weather service. */
function forecast(city: string, day: number) {
	const temperature = ((day * 37) % 31) + 3;
	const hours = Array.from({ length: 8 }, (_, i) => ({ hour: 6 + 2 * i, celsius: temperature + ((i * day) % 5) }));
	return { city, day, temperature, rain: ((day * 53) % 100) / 100, wind: winds[day % winds.length], hours };
}

/** Stands in for the model: asks for the weather first, then answers from it. */
function think(messages: BaseMessage[]): AIMessage {
	const last = messages[messages.length - 1];
	if (last?.type === "tool") {
		const { city, temperature, rain, wind } = JSON.parse(last.text) as ReturnType<typeof forecast>;
		const coat = temperature < 12 ? "a warm coat and good shoes" : "something light";
		const umbrella = rain > 0.4 ? "Take an umbrella." : "Leave the umbrella at home.";
		return new AIMessage(
			`In ${city} it will be ${temperature} degrees with ${wind}, so wear ${coat}. ` +
				`The chance of rain is ${Math.round(rain * 100)} percent. ${umbrella}`,
		);
	}
	const [, city, day] = /in (\w+) on day (\d+)/.exec(last?.text ?? "") ?? [];
	const call = { id: `call-${messages.length}`, name: "weather", args: { city, day: Number(day) } };
	return new AIMessage({ content: "", tool_calls: [call] });
}

export type Agent = ReturnType<typeof compileAgent>;

/** An ordinary agent: a model, a tool, a growing list of messages. */
export function compileAgent(checkpointer: BaseCheckpointSaver, onToolCall?: (day: number) => Promise<void>) {
	const calls = { model: 0 };
	const weather = tool(
		async ({ city, day }) => {
			await onToolCall?.(day);
			return JSON.stringify(forecast(city, day));
		},
		{ name: "weather", description: "The weather of a day", schema: z.object({ city: z.string(), day: z.number() }) },
	);
	const graph = new StateGraph(MessagesAnnotation)
		.addNode("model", ({ messages }) => {
			calls.model++;
			return { messages: [think(messages)] };
		})
		.addNode("tools", new ToolNode([weather]))
		.addEdge(START, "model")
		.addConditionalEdges("model", toolsCondition)
		.addEdge("tools", "model")
		.compile({ checkpointer });
	return { graph, calls };
}

import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { inOnePiece, Random } from "./random.ts";

/** As many as a person uses in a long conversation. */
const VOCABULARY = 4000;
/** With this many characters a stored message is about 450 bytes long. */
const MESSAGE_CHARACTERS = 385;

const words = inventWords(new Random(7));

function inventWords(random: Random): string[] {
	const onsets = [
		"",
		"b",
		"ch",
		"d",
		"f",
		"g",
		"h",
		"l",
		"m",
		"n",
		"p",
		"qu",
		"r",
		"s",
		"st",
		"t",
		"th",
		"tr",
		"v",
		"w",
	];
	const vowels = ["a", "e", "i", "o", "u", "ea", "ou", "ai"];
	const codas = ["", "", "n", "r", "s", "t", "l", "nd", "st", "ck", "m", "ng"];
	const syllable = () => random.pick(onsets) + random.pick(vowels) + random.pick(codas);
	return Array.from({ length: VOCABULARY }, (_, rank) => {
		// Common words are short, as in any language.
		const syllables = 1 + random.below(rank < 60 ? 1 : rank < 600 ? 2 : 4);
		return Array.from({ length: syllables }, syllable).join("");
	});
}

/** Prose that compresses about as well as real prose: few words often, many words seldom. */
export function writeText(random: Random, characters: number): string {
	let text = "";
	while (text.length < characters) {
		const word = words[Math.floor(VOCABULARY ** random.next()) - 1] as string;
		const ending = random.next() < 0.1 ? ". " : " ";
		text += word + ending;
	}
	return inOnePiece(text.slice(0, characters));
}

/** A conversation: questions and answers in turn, each about 450 bytes long when it is stored. */
export function writeMessages(count: number, seed = 1, characters = MESSAGE_CHARACTERS): BaseMessage[] {
	const random = new Random(seed);
	return Array.from({ length: count }, (_, i) => {
		const fields = { id: random.uuid(), content: writeText(random, characters) };
		return i % 2 === 0 ? new HumanMessage(fields) : new AIMessage(fields);
	});
}

/** The parts of a message that no serializer can do without. */
export function plainMessage({ type, id, content }: BaseMessage): object {
	return { type, id, content };
}

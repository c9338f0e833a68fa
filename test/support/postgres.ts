import { inject } from "vitest";

/** URL of a PostgreSQL to test with: the one that the run shares, or the one that TEST_POSTGRES_URL names. */
export async function postgresUrl(): Promise<string> {
	const { TEST_POSTGRES_URL } = process.env;
	if (TEST_POSTGRES_URL) return TEST_POSTGRES_URL;
	const response = await fetch(inject("postgresBroker"));
	const text = await response.text();
	if (!response.ok) throw new Error(`No PostgreSQL to test with: ${text}`);
	return text;
}

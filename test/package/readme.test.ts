import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inTemporaryFolder, root, runNode, typescript } from "../support/run-node.ts";

function firstCodeBlock(markdown: string): string {
	const block = /^```(?:ts|typescript)\n(.*?)^```/ms.exec(markdown)?.[1];
	if (block === undefined) throw new Error("README.md has no TypeScript code block");
	return block;
}

describe("README.md", () => {
	it("opens with code that runs as it stands", async () => {
		const code = firstCodeBlock(readFileSync(join(root, "README.md"), "utf8"));
		await inTemporaryFolder(async (folder) => {
			symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
			writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
			writeFileSync(join(folder, "readme.ts"), code);
			const env = { ...process.env, TSX_TSCONFIG_PATH: join(root, "tsconfig.json") };
			await runNode([...typescript, "readme.ts"], { cwd: folder, env });
		});
	});
});

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeVectors } from "./vector-inputs.ts";

/**
 * Writes the vectors anew, after a change of the stored format that is meant.
 *
 * Usage: tsx test/codec/write-vectors.ts
 */
writeFileSync(join(import.meta.dirname, "vectors.json"), `${JSON.stringify(makeVectors(), null, "\t")}\n`);

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { CallEndingSchema } from "../../../gen/uas/billing/v1/call_pb.ts";
import { enumWord } from "../../../src/cli/values.ts";

const page = readFileSync(join(import.meta.dirname, "../../../docs/reference/commands.md"), "utf8");

it("docs/reference/commands.md names every ending of a call", () => {
  for (const { number } of CallEndingSchema.values.slice(1)) {
    expect(page).toContain(`\`${enumWord(CallEndingSchema, number)}\``);
  }
});

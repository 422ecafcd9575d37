import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { CallEndingSchema } from "../../../gen/uas/billing/v1/call_pb.ts";
import { buildProgram } from "../../../src/cli/program.ts";
import { enumWord } from "../../../src/cli/values.ts";

const page = readFileSync(join(import.meta.dirname, "../../../docs/command-line.md"), "utf8");
const context = {
  env: {},
  cwd: "/",
  version: "",
  out: () => {},
  err: () => {},
  servedKinds: () => Promise.reject(new Error("not needed")),
  app: () => Promise.reject(new Error("not needed")),
};

/** `topup <account> <amount> --reference <text>`: a command as the page writes it. */
function usage(command: Command, path: string): string {
  const args = command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  );
  const options = command.options.map(({ flags, mandatory }) => (mandatory ? flags : `[${flags}]`));
  return [path, ...args, ...options].join(" ");
}

function usages(command: Command, path: string): string[] {
  if (command.commands.length === 0) return [usage(command, path)];
  return command.commands.flatMap((child) => usages(child, `${path} ${child.name()}`.trim()));
}

describe("docs/command-line.md", () => {
  it("lists exactly the commands that there are, with their arguments", () => {
    const written = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, command = ""]) => command);
    expect(written.toSorted()).toEqual(
      usages(buildProgram({ context, print: () => {} }), "").toSorted(),
    );
  });

  it("names every ending of a call", () => {
    for (const { number } of CallEndingSchema.values.slice(1)) {
      expect(page).toContain(`\`${enumWord(CallEndingSchema, number)}\``);
    }
  });
});

/** `uas contract …`, which needs neither configuration nor database. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { type Change, compareContracts } from "../contract/compare.ts";
import { type Contract, readContract } from "../contract/contract.ts";
import { describeChanges } from "../contract/describe.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { CliError } from "./failure.ts";

/** Adds the command. */
export function addContractCommands(contract: Command, { context, print }: CliTools): void {
  contract
    .command("compare")
    .description("list the changes between two descriptors; exit 1 if any breaks clients")
    .argument("<older>", "the descriptor that clients were generated from")
    .argument("<newer>", "the descriptor of the gateway to move to")
    .action((older: string, newer: string) => {
      print(compare(readFrom(context, older), readFrom(context, newer)));
    });
}

function compare(older: Contract, newer: Contract): Output {
  const changes = compareContracts(older, newer);
  const isBreaking = changes.some((change) => change.isBreaking);
  const sections = describeChanges(changes).map(
    ({ heading, lines }) => `${heading}\n${lines.map((line) => `  ${line}`).join("\n")}`,
  );
  return {
    json: { breaking: isBreaking, changes: changes.map(changeJson) },
    text: sections.length === 0 ? "no changes" : sections.join("\n\n"),
    exitCode: isBreaking ? 1 : 0,
  };
}

function changeJson({ action, element, isBreaking, property, paths }: Change) {
  const { kind, name } = element;
  return { action, kind, name, breaking: isBreaking, property: property ?? null, paths };
}

function readFrom(context: CliContext, path: string): Contract {
  const file = resolve(context.cwd, path);
  try {
    return readContract(readFileSync(file));
  } catch (cause) {
    const text = `${file} is not a readable descriptor: write one with \`buf build -o contract.binpb\``;
    throw new CliError(text, { cause });
  }
}

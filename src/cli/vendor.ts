/** `uas vendor …`. */
import type { Command } from "commander";
import { modelTypeWord } from "../config/kinds.ts";
import { presets } from "../config/presets.ts";
import type { CliTools, Output } from "./context.ts";
import { cell, table } from "./output.ts";

/** Adds the commands. */
export function addVendorCommands(program: Command, { print }: CliTools): void {
  const vendor = program.command("vendor").description("look at vendors");
  vendor
    .command("presets")
    .description("list the vendors that `preset:` knows; needs no database")
    .action(() => print(presetList()));
}

function presetList(): Output {
  const json = [...presets].map(([preset, each]) => ({
    preset,
    kind: each.kind,
    baseUrl: each.baseUrl || null,
    needsApiKey: each.needsApiKey,
    limitParameter: each.limitParameter,
    modelTypes: each.modelTypes.map(modelTypeWord),
    source: each.source,
  }));
  const rows = json.map(({ preset, baseUrl, needsApiKey, modelTypes, source }) => [
    preset,
    baseUrl ?? "(yours)",
    needsApiKey ? "required" : "optional",
    cell(modelTypes.join(",")),
    source,
  ]);
  return { json, text: table(["PRESET", "BASE URL", "API KEY", "MODELS", "SOURCE"], rows) };
}

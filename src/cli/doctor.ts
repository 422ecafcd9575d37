/** `uas doctor`: checks an installation and says what to do. */
import type { Command } from "commander";
import type { Config, Settings } from "../config/config.ts";
import { ConfigError } from "../config/problems.ts";
import { failureMessage } from "../core/error-words.ts";
import { configOf, settingsOf } from "./backend.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { checkDatabase } from "./doctor/database.ts";
import { type Finding, findings } from "./doctor/finding.ts";
import { checkGateway } from "./doctor/gateway.ts";
import { checkDisk, checkMemory, checkNode } from "./doctor/machine.ts";
import { checkEgress, checkPublicUrl, vendorFindings } from "./doctor/network.ts";
import { printable } from "./output.ts";
import { connectGateway } from "./running-gateway.ts";

/** Adds the action to the command. */
export function addDoctor(command: Command, { context, print }: CliTools): void {
  command.action(async () => {
    print(doctorOutput(await examine(context)));
  });
}

async function examine(context: CliContext): Promise<readonly Finding[]> {
  const settings = settingsOf(context);
  const [configuration, config] = await checkConfiguration(context);
  const running = await runningGateway(context, settings);
  const app = await context.app();
  const probes = config === undefined ? [] : await app.probeVendors(config);
  return [
    ...configuration,
    ...running.findings,
    ...(await checkDatabase(app, settings, running.processes)),
    checkDisk(settings),
    checkMemory(settings),
    checkNode(process.version),
    ...vendorFindings(probes),
    await checkPublicUrl(settings, running.processes > 0),
    await checkEgress(probes),
  ];
}

async function checkConfiguration(
  context: CliContext,
): Promise<readonly [readonly Finding[], Config | undefined]> {
  const { ok, warning, problem } = findings("configuration");
  try {
    const config = await configOf(context, { unresolved: "refuse" });
    const { vendors, models } = config;
    const text = `${config.source}: ${counted(vendors.size, "vendor")}, ${counted(models.size, "model")}`;
    const head = config.isDemo
      ? warning("the built-in demo is served", "write uas.yaml: `uas init`")
      : ok(text);
    return [[head, ...config.warnings.map((each) => warning(each, "run `uas check`"))], config];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [error.problems.map((each) => problem(each, "correct the file")), undefined];
  }
}

async function runningGateway(context: CliContext, settings: Settings) {
  try {
    const running = await connectGateway(context, settings);
    return await checkGateway(running?.transport, context.version);
  } catch (error) {
    const { problem } = findings("gateway");
    const found = problem(failureMessage(error), "look at its log");
    return { findings: [found], processes: 0 };
  }
}

function doctorOutput(found: readonly Finding[]): Output {
  const count = (result: Finding["result"]): number =>
    found.filter((each) => each.result === result).length;
  const [problems, warnings] = [count("problem"), count("warning")];
  const last = `${counted(problems, "problem")}, ${counted(warnings, "warning")}`;
  return {
    json: { ok: problems === 0, findings: found },
    text: `${found.flatMap(findingLines).join("\n")}\n\n${last}`,
    exitCode: problems === 0 ? 0 : 1,
  };
}

function counted(count: number, noun: string): string {
  return `${count} ${count === 1 ? noun : `${noun}s`}`;
}

/** Lines instead of a table: a terminal would cut texts and remedies. */
function findingLines({ check, result, text, remedy }: Finding): readonly string[] {
  const head = `${result.padEnd(resultWidth)}  ${check}: ${printable(text)}`;
  return remedy === "" ? [head] : [head, `${" ".repeat(resultWidth)}  -> ${remedy}`];
}

const resultWidth = "skipped".length;

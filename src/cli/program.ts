/** The command line: parses arguments, runs one command, returns the exit code. */
import { Command, CommanderError } from "commander";
import { addAccountCommands } from "./account.ts";
import { configOf, settingsOf, warn } from "./backend.ts";
import { addCallsCommands } from "./calls.ts";
import { addCheckCommand } from "./check.ts";
import { addConsoleCommands } from "./console.ts";
import { addContractCommands } from "./contract.ts";
import type { Config } from "../config/config.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { failureLines } from "./failure.ts";
import { addKeyCommands } from "./key.ts";
import { addLedgerCommands } from "./ledger.ts";
import { addMasterKeyCommands } from "./master-key.ts";
import { addModelsCommands } from "./models.ts";
import { addPriceCommands } from "./price.ts";
import { addRedeemCommands } from "./redeem.ts";
import { addTaskCommands } from "./task.ts";
import { addUsageCommand } from "./usage.ts";
import { addVendorCommands } from "./vendor.ts";
import { addWebhookCommands } from "./webhook.ts";

/** 0: done. 1: refused or failed. 2: usage error. */
export type ExitCode = 0 | 1 | 2;

/** Runs one command. `argv` is the process's own: arguments start at index 2. */
export async function runCli(argv: readonly string[], context: CliContext): Promise<ExitCode> {
  let exitCode: ExitCode = 0;
  const program: Command = buildProgram({
    context,
    print(output) {
      exitCode = output.exitCode ?? 0;
      context.out(written(output, program.opts<{ json?: boolean }>().json === true));
    },
  });
  try {
    await program.parseAsync(argv);
    return exitCode;
  } catch (error) {
    // Commander has printed the error or the requested help.
    if (error instanceof CommanderError) return isAnswer(error) ? 0 : 2;
    for (const line of failureLines(error)) context.err(`${line}\n`);
    return 1;
  }
}

/** Builds the parser with all commands. */
export function buildProgram(tools: CliTools): Command {
  const { context } = tools;
  const program = new Command("uas")
    .description("UAS Gateway: one address and one prepaid balance for hosted AI models")
    .version(context.version, "-V, --version", "print the version")
    .option("--json", "print one JSON document instead of text")
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => context.out(text),
      writeErr: (text) => context.err(text),
      outputError: (text, write) => write(usageLine(text)),
    })
    .exitOverride();
  addServeCommand(program, tools);
  addCheckCommand(program, tools);
  addAccountCommands(program, tools);
  addKeyCommands(program, tools);
  addConsoleCommands(program, tools);
  addModelsCommands(program, tools);
  addVendorCommands(program, tools);
  addPriceCommands(program, tools);
  addRedeemCommands(program, tools);
  addCallsCommands(program, tools);
  addUsageCommand(program, tools);
  addLedgerCommands(program, tools);
  addTaskCommands(program, tools);
  addWebhookCommands(program, tools);
  addMasterKeyCommands(program, tools);
  addContractCommands(program, tools);
  return program;
}

/** Requested help is a success; help because the command is missing is not. */
function isAnswer(error: CommanderError): boolean {
  return error.code === "commander.helpDisplayed" || error.exitCode === 0;
}

function usageLine(text: string): string {
  const message = text
    .replace(/^error: /, "")
    .trim()
    .replace(/\s*\n\s*/g, " ")
    .replace(/\.$/, "");
  return `uas: ${message}; see uas --help\n`;
}

function written({ json, text }: Output, asJson: boolean): string {
  if (asJson) return `${JSON.stringify(json, null, 2)}\n`;
  return text === "" ? "" : `${text}\n`;
}

/** Adds `uas serve`. */
function addServeCommand(program: Command, { context }: CliTools): void {
  program
    .command("serve")
    .description("run the gateway until SIGTERM or SIGINT, then let running calls finish")
    .action(async () => {
      const settings = settingsOf(context);
      const readConfig = async (): Promise<Config> => {
        const config = await configOf(context, { unresolved: "refuse" });
        for (const warning of config.warnings) warn(context, warning);
        return config;
      };
      const config = await readConfig();
      const { serve } = await context.app();
      await serve({ settings, config, readConfig });
    });
}

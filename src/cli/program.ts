/** The command line: parses arguments, runs one command, returns the exit code. */
import { Command, CommanderError, InvalidArgumentError } from "commander";
import { commands } from "./commands.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { readEnvFile } from "./env-file.ts";

/** 0: done. 1: refused or failed. 2: usage error. */
export type ExitCode = 0 | 1 | 2;

/** Runs one command. `argv` is the process's own: arguments start at index 2. */
export async function runCli(argv: readonly string[], given: CliContext): Promise<ExitCode> {
  let exitCode: ExitCode = 0;
  const context = { ...given, gatewayUrl: given.gatewayUrl };
  const tools: CliTools = {
    context,
    print(output) {
      exitCode = output.exitCode ?? 0;
      context.out(written(output, program.opts<{ json?: boolean }>().json === true));
    },
  };
  // A word that names a command may also be a value: that command is then loaded in vain.
  const isNeeded = (name: string): boolean => argv.includes(name) || argv.includes("completion");
  const program: Command = await buildProgram(tools, isNeeded);
  program.hook("preAction", () => {
    const { envFile, gateway } = program.opts<{ envFile?: string; gateway?: string }>();
    context.gatewayUrl = gateway;
    // Into the environment of this process too: workers inherit it.
    if (envFile !== undefined) Object.assign(given.env, readEnvFile(context.cwd, envFile));
  });
  try {
    await program.parseAsync(argv);
    return exitCode;
  } catch (error) {
    // Commander has printed the error or the requested help.
    if (error instanceof CommanderError) return isAnswer(error) ? 0 : 2;
    const { failureLines } = await import("./failure-lines.ts");
    for (const line of failureLines(error)) context.err(`${line}\n`);
    return 1;
  }
}

/**
 * Builds the parser.
 *
 * @param isNeeded whether a command is loaded. The others have their name and description only
 */
export async function buildProgram(
  tools: CliTools,
  isNeeded: (name: string) => boolean,
): Promise<Command> {
  const { context } = tools;
  const program = new Command("uas")
    .description("UAS Gateway: one address and one prepaid balance for hosted AI models")
    .version(context.version, "-V, --version", "print the version")
    .option("--json", "print one JSON document instead of text")
    .option("--env-file <file>", "read variables from this file of a service, NAME='value' a line")
    .option(
      "--gateway <url>",
      "use the gateway at this internal address, with UAS_OPERATOR_TOKEN",
      urlArgument,
    )
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => context.out(text),
      writeErr: (text) => context.err(text),
      outputError: (text, write) => write(usageLine(text)),
    })
    .exitOverride();
  for (const { name, description, load } of commands) {
    const command = program.command(name).description(description);
    if (isNeeded(name)) (await load())(command, tools);
  }
  return program;
}

function urlArgument(text: string): string {
  if (/^https?:\/\/[^/]+\/?$/.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError("Write an address such as http://10.0.0.1:8081.");
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

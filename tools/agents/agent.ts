/** Common interface of agent command lines. */

/** Address and key of the gateway. */
export interface Door {
  /** Without a path, and without a trailing slash. */
  readonly origin: string;
  /** The customer's secret. */
  readonly key: string;
}

/** A model that the gateway serves, named after the style of its vendor. */
export interface Model {
  readonly key: string;
  readonly vendor: "chat" | "responses" | "messages" | "gemini";
}

/** Setup of an agent. */
export interface Setup extends Door {
  readonly model: Model;
}

/** Start command of an agent. */
export interface Command {
  readonly args: readonly string[];
  /** Whether the prompt is the last argument. Default: it goes to standard input. */
  readonly isPromptArgument?: boolean;
  /** Beside `HOME`, `PATH` and what every run gets. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The package that brings an agent's program. */
export interface Cli {
  /** The npm package. */
  readonly package: string;
  /** The version that the settings were verified with. */
  readonly version: string;
  /** The program's name in `node_modules/.bin`. */
  readonly program: string;
}

/** One way to use one agent. */
export interface Agent {
  /** The name in the table. */
  readonly name: string;
  readonly cli: Cli;
  /** Whether it requests reasoning that it can send back, for any model name. */
  readonly reasons: boolean;
  /** Files of settings, by path below the home. */
  settings(setup: Setup): Readonly<Record<string, string>>;
  /** A command that logs in, with the key on its standard input. Default: no need to. */
  readonly login?: Command;
  /** Returns the command that answers one prompt, and may run the tools that the model calls. */
  ask(setup: Setup): Command;
  /**
   * Arguments before those of {@link ask} that make it compact its conversation after each step.
   * Absent if that is impossible.
   */
  readonly compacting?: readonly string[];
  /** The styles of vendors whose models it can call. Default: all but Gemini's. */
  readonly vendors?: readonly Model["vendor"][];
  /** Returns a call of its tool for shell commands. */
  callOf(command: string): ShellCall;
  /** Reads the model's last text from standard output; undefined if there is none. */
  answerOf(output: string): string | undefined;
}

/** A call of a tool, as the model makes it. */
export interface ShellCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, string | readonly string[]>>;
}

/** The JSON objects in output that has one a line, other lines left out. */
export function jsonLines(output: string): Array<Record<string, unknown>> {
  return output.split("\n").flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line);
      return isRecord(value) ? [value] : [];
    } catch {
      return [];
    }
  });
}

/** Returns a string below these members. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  let found = value;
  for (const name of path) found = isRecord(found) ? found[name] : undefined;
  return typeof found === "string" ? found : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

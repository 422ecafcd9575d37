/** What is known of an agent command line, whichever it is. */

/** Where an agent finds the gateway. */
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

/** What an agent is set up for. */
export interface Setup extends Door {
  readonly model: Model;
}

/** How to start an agent's program. */
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
  /** Whether it asks for reasoning that it can bring back, whatever the model is called. */
  readonly reasons: boolean;
  /** Files of settings, by path below the home. */
  settings(setup: Setup): Readonly<Record<string, string>>;
  /** A command that logs in, with the key on its standard input. Default: no need to. */
  readonly login?: Command;
  /** The command that answers one prompt, and may run what it is told to. */
  ask(setup: Setup): Command;
  /**
   * Arguments before those of {@link ask} that make it compact its conversation after each step.
   * Absent if it cannot be made to.
   */
  readonly compacting?: readonly string[];
  /** The styles of vendors whose models it can call. Default: all but Gemini's. */
  readonly vendors?: readonly Model["vendor"][];
  /** How its tool for shell commands is called. */
  callOf(command: string): ShellCall;
  /** The last text of the model, from standard output; undefined if there is none. */
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

/** A string that stands below these members. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  let found = value;
  for (const name of path) found = isRecord(found) ? found[name] : undefined;
  return typeof found === "string" ? found : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

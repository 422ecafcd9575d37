/** What the commands get from the outside: streams, environment, and the program behind them. */
import type { Transport } from "@connectrpc/connect";
import type { Config, Settings } from "../config/config.ts";
import type { ServedKinds } from "../config/kinds.ts";

/** The part of the program that commands call. app.ts is one. */
export interface CliApp {
  /** Opens the services in this process, on the same database as the running gateway. */
  readonly openBackend: (options: OpenBackendOptions) => Promise<Backend>;
  /** Runs the gateway; resolves after a signal and the drain. */
  readonly serve: (options: OpenOptions) => Promise<void>;
}

/** What says how this installation is set up. */
export interface OpenOptions {
  readonly settings: Settings;
  readonly config: Config;
}

/** What a command opens the services with. */
export interface OpenBackendOptions extends OpenOptions {
  /** Told of an account that what the command moves takes below its threshold. */
  readonly onLowBalance: (accountId: string) => void;
}

/** The services, open. */
export interface Backend {
  /** Calls as the operator. */
  readonly transport: Transport;
  close(): Promise<void>;
}

/** The world of one command. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The version of this program, for `--version`. */
  readonly version: string;
  /** Writes to standard output. */
  readonly out: (text: string) => void;
  /** Writes to standard error. */
  readonly err: (text: string) => void;
  /** What this version can serve, for reading the configuration. Apart from {@link app}, which takes a
   * second to load and which `check` does not need. */
  readonly servedKinds: () => Promise<ServedKinds>;
  /** Loads the program. Late, so that `--help` and wrong usage answer at once. */
  readonly app: () => Promise<CliApp>;
}

/** What a command has to say. */
export interface Output {
  /** The one JSON document of `--json`. */
  readonly json: unknown;
  /** The text for people, lines without the last line's end. */
  readonly text: string;
  /** Default 0. */
  readonly exitCode?: 0 | 1;
}

/** What a command group is built with. */
export interface CliTools {
  readonly context: CliContext;
  /** Prints a command's output and sets the exit code. */
  readonly print: (output: Output) => void;
}

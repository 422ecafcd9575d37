/** The outside world of commands: streams, environment, and the program. */
import type { Transport } from "@connectrpc/connect";
import type { Config, Settings } from "../config/config.ts";
import type { ServedKinds } from "../config/kinds.ts";

/** The part of the program that commands call; app/backend.ts and app/serve.ts implement it. */
export interface CliApp {
  /** Opens the services in this process, on the running gateway's database. */
  readonly openBackend: (options: OpenBackendOptions) => Promise<Backend>;
  /** Runs the gateway; resolves after a signal and the drain. */
  readonly serve: (options: ServeOptions) => Promise<void>;
  /** Encrypts the secrets of the database with the master key of the settings. */
  readonly rotateMasterKey: (options: RotateOptions) => Promise<RotatedSecrets>;
  /** Reads facts about the database, without a migration. @throws if it cannot be used */
  readonly inspectDatabase: (settings: Settings) => Promise<DatabaseFacts>;
  /** Sends each vendor one request per credential that is free of charge. Needs no database. */
  readonly probeVendors: (config: Config) => Promise<readonly ProbedVendor[]>;
}

/** Facts about the database; see app/database-check.ts. */
export interface DatabaseFacts {
  readonly version: string;
  readonly maxConnections: number;
  readonly isReadOnly: boolean;
  /** Milliseconds by which the clock of this machine is ahead of the database's. */
  readonly aheadMs: number;
  readonly pending: readonly string[];
  readonly unknown: readonly string[];
  /** Whether the master key opens the secrets. Undefined if there is no key or no secret yet. */
  readonly isKeyRight: boolean | undefined;
}

/** A vendor's answer to one of its credentials; see provider/probe.ts. */
export interface ProbedVendor {
  readonly vendor: string;
  /** The name of the credential's variable or file. Undefined if the vendor has none. */
  readonly credential: string | undefined;
  readonly verdict: "ok" | "refused" | "failing" | "unknown";
  readonly status: number | undefined;
  readonly latencyMs: number;
  readonly message: string;
  /** Names of the vendor's models. Undefined if it did not list them. */
  readonly models: readonly string[] | undefined;
  /** Names of routes that the vendor does not list. */
  readonly missingModels: readonly string[];
}

/** Options of a change of the master key. */
export interface RotateOptions {
  readonly settings: Settings;
  /** The former master key, 32 bytes. Undefined: it is lost, so what it encrypts is deleted. */
  readonly previous: Uint8Array | undefined;
}

/**
 * The number of secrets of each kind that were encrypted again, or deleted if the former key is
 * lost.
 */
export interface RotatedSecrets {
  readonly dataKeys: number;
  readonly webhookSecrets: number;
  readonly authenticators: number;
  readonly reasoning: number;
  readonly configSecrets: number;
}

/** Settings and configuration of this installation. */
export interface OpenOptions {
  readonly settings: Settings;
  readonly config: Config;
}

/** Options of a running gateway. */
export interface ServeOptions extends OpenOptions {
  /**
   * Reads the configuration again. @param secrets of the database by name; undefined before it is
   * open
   * @throws if it is faulty
   */
  readonly readConfig: (secrets?: ReadonlyMap<string, string>) => Promise<Config>;
}

/** Options for opening the services. */
export interface OpenBackendOptions extends OpenOptions {
  /** Reads the file with the secrets of the database. @throws if it is faulty */
  readonly readConfig: ServeOptions["readConfig"];
  /** Whether references that cannot be resolved have a placeholder. */
  readonly hasPlaceholders: boolean;
  /** Called if the command takes an account below its low-balance threshold. */
  readonly onLowBalance: (accountId: string) => void;
}

/** The open services. */
export interface Backend {
  /** Calls as the operator. */
  readonly transport: Transport;
  close(): Promise<void>;
}

/** The outside world of one command. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** `--gateway`: the internal listener of a gateway elsewhere. */
  readonly gatewayUrl?: string | undefined;
  /** The program's version, for `--version`. */
  readonly version: string;
  /** Writes to standard output. */
  readonly out: (text: string) => void;
  /** Writes to standard error. */
  readonly err: (text: string) => void;
  /** Asks the user, and returns the answer. Undefined if standard input is no terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  /**
   * The vendor kinds of this version, for reading the configuration. Separate from {@link app},
   * which takes a second to load and which `check` does not need.
   */
  readonly servedKinds: () => Promise<ServedKinds>;
  /** Loads the program; deferred, so that `--help` and usage errors respond at once. */
  readonly app: () => Promise<CliApp>;
}

/** The output of a command. */
export interface Output {
  /** The single JSON document of `--json`. */
  readonly json: unknown;
  /** Text for people, without the last line break. */
  readonly text: string;
  /** Default 0. */
  readonly exitCode?: 0 | 1;
}

/** Dependencies of a command group. */
export interface CliTools {
  readonly context: CliContext;
  /** Prints a command's output and sets the exit code. */
  readonly print: (output: Output) => void;
}

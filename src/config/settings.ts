/** Reads the settings of a process from environment variables: addresses, folders, secrets. */
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import {
  parseListen,
  parseOrigin,
  parseProxies,
  type Parsed,
  type ListenAddress,
} from "./address.ts";
import { databaseAddressProblem } from "../core/database-address.ts";
import type { Settings } from "./config.ts";
import { concurrentCallsMax, drainDelayMsDefault } from "../core/limits.ts";
import { decodeMasterKey } from "./master-key.ts";
import { ConfigError } from "./problems.ts";
import { nearest } from "../core/suggest.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The settings, and warnings about variables without effect. */
export interface ReadSettings extends Settings {
  /** `NAME: message`, for variables that begin with `UAS_` but do not exist. */
  readonly warnings: readonly string[];
}

/** The meaning of a variable, for the reference of the docs. */
interface VariableFacts {
  readonly meaning: string;
  /** The default, in words. */
  readonly byDefault: string;
}

/** Every variable that the gateway and its command line read, in Markdown. */
export const variables = {
  UAS_CONFIG: {
    meaning: "the configuration file",
    byDefault: "`uas.yaml`, else the built-in demo",
  },
  UAS_DATA_DIR: {
    meaning:
      "folder of the settlement journal, the embedded database, generated secrets and result files",
    byDefault: "`.data`",
  },
  UAS_LISTEN: {
    meaning:
      "`host:port` for customers: `127.0.0.1:8080`, `0.0.0.0:8080`, `[::1]:8080`; port 0 means any free port",
    byDefault: "`127.0.0.1:8080`",
  },
  UAS_INTERNAL_LISTEN: {
    meaning: "`host:port` for internal services (gRPC, Connect, metrics)",
    byDefault: "`127.0.0.1:8081`",
  },
  DATABASE_URL: {
    meaning: "PostgreSQL 15 or later: `postgresql://user:password@host:5432/database`",
    byDefault: "the embedded PostgreSQL",
  },
  UAS_MASTER_KEY: {
    meaning:
      "base64 of 32 bytes (`openssl rand -base64 32`), from which the keys of stored secrets derive; the same for all processes of a database",
    byDefault: "generated: `master.key` in the data folder",
  },
  UAS_PUBLIC_URL: {
    meaning:
      "the origin at which customers reach the gateway, such as `https://ai.example.com`; with https, vendors send callbacks to it",
    byDefault: "derived from `UAS_LISTEN`",
  },
  UAS_CONSOLE_URL: {
    meaning:
      "the origin of the console if it has its own host; its host name differs from that of `UAS_PUBLIC_URL`",
    byDefault: "the console answers on every host",
  },
  UAS_TRUST_PROXY: {
    meaning:
      "proxies whose `x-forwarded-*` headers are trusted: addresses and ranges separated by commas, or `loopback`, `linklocal`, `uniquelocal`",
    byDefault: "none",
  },
  UAS_OPERATOR_TOKEN: {
    meaning:
      "bearer token for operator RPCs on the internal listener; visible ASCII without spaces. During a rotation, two with a comma between: `NEW,OLD`",
    byDefault: "operator RPCs are refused",
  },
  UAS_WORKERS: {
    meaning:
      "number of processes that serve: 1 to 64, or `auto` for one per core; above 1 a supervisor runs them",
    byDefault: "1",
  },
  UAS_MAX_CONCURRENT_CALLS: {
    meaning:
      "maximum number of concurrent calls to models per process; further calls get 503 and `retry-after`",
    byDefault: String(concurrentCallsMax),
  },
  UAS_SECRETS_DIR: {
    meaning:
      "a folder from which an applied configuration may read secrets as `${file:…}`, besides `/run/secrets`",
    byDefault: "none",
  },
  UAS_WATCH_CONFIG: {
    meaning:
      "`on` loads the configuration file when it changes; otherwise a change is only logged, and SIGHUP or `uas reload` loads it",
    byDefault: "off",
  },
  UAS_DRAIN_DELAY: {
    meaning:
      "how long a process continues to serve after SIGTERM while `/readyz` answers 503: `0s` to `10m`",
    byDefault: `${drainDelayMsDefault / 1_000}s`,
  },
} as const satisfies Readonly<Record<string, VariableFacts>>;

/** Only SDK examples read it. */
const exampleVariable = "UAS_API_KEY";

const knownVariables: readonly string[] = [...Object.keys(variables), exampleVariable];

/**
 * Reads the environment. An empty variable counts as not set.
 *
 * @param cwd the folder that relative paths start from
 * @throws ConfigError with all problems, as `NAME: message`; values that may be secret are not
 * repeated
 */
export function readSettings(env: Environment, cwd: string): ReadSettings {
  const problems: string[] = [];
  const read = <Value>(name: string, parse: (text: string) => Parsed<Value>): Value | undefined => {
    const written = env[name]?.trim() ?? "";
    if (written === "") return undefined;
    const parsed = parse(written);
    if ("value" in parsed) return parsed.value;
    problems.push(`${name}: ${parsed.problem}`);
    return undefined;
  };
  const settings: ReadSettings = {
    configPath: read("UAS_CONFIG", asIs),
    dataDir: resolve(cwd, read("UAS_DATA_DIR", asIs) ?? ".data"),
    listen: read("UAS_LISTEN", parseListen) ?? { host: "127.0.0.1", port: 8080 },
    internalListen: read("UAS_INTERNAL_LISTEN", parseListen) ?? { host: "127.0.0.1", port: 8081 },
    databaseUrl: read("DATABASE_URL", parseDatabaseUrl),
    publicUrl: read("UAS_PUBLIC_URL", parseOrigin),
    consoleUrl: read("UAS_CONSOLE_URL", parseOrigin),
    trustProxy: read("UAS_TRUST_PROXY", parseProxies) ?? [],
    masterKey: read("UAS_MASTER_KEY", parseMasterKey),
    operatorToken: read("UAS_OPERATOR_TOKEN", parseToken),
    workers: read("UAS_WORKERS", parseWorkers) ?? 1,
    maxConcurrentCalls: read("UAS_MAX_CONCURRENT_CALLS", parseCalls) ?? concurrentCallsMax,
    drainDelayMs: read("UAS_DRAIN_DELAY", parseDrainDelay) ?? drainDelayMsDefault,
    watchesConfig: read("UAS_WATCH_CONFIG", parseSwitch) ?? false,
    warnings: [...retiredVariables(env), ...unknownVariables(env)],
  };
  if (sameAddress(settings.listen, settings.internalListen)) {
    problems.push("UAS_INTERNAL_LISTEN: is the same address as UAS_LISTEN; choose another port");
  }
  if (sameHostName(settings.publicUrl, settings.consoleUrl)) {
    problems.push(
      "UAS_CONSOLE_URL: has the host name of UAS_PUBLIC_URL; choose another one, because cookies do not distinguish ports",
    );
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return settings;
}

function asIs(text: string): Parsed<string> {
  return { value: text };
}

function parseDatabaseUrl(text: string): Parsed<string> {
  const problem = databaseAddressProblem(text);
  return problem === undefined ? { value: text } : { problem };
}

function parseMasterKey(text: string): Parsed<Buffer> {
  const value = decodeMasterKey(text);
  if (value !== undefined) return { value };
  return { problem: "must be 32 bytes in base64: create one with `openssl rand -base64 32`" };
}

/** The operator tokens; a comma separates them. The first one is the new one. */
export function tokensOf(operatorToken: string | undefined): readonly string[] {
  return operatorToken?.split(",").filter((token) => token !== "") ?? [];
}

function parseToken(text: string): Parsed<string> {
  if (/^[\x21-\x7e]+$/.test(text)) return { value: text };
  return { problem: "must be visible ASCII characters without spaces: it is sent in a header" };
}

function parseSwitch(text: string): Parsed<boolean> {
  if (text === "on" || text === "off") return { value: text === "on" };
  return { problem: "must be on or off" };
}

/** More workers on one machine are a mistake: each has its own connections to the database. */
const workersMax = 64;

function parseWorkers(text: string): Parsed<number> {
  if (text === "auto") return { value: Math.min(availableParallelism(), workersMax) };
  const value = Number(text);
  if (/^[1-9]\d*$/.test(text) && value <= workersMax) return { value };
  return {
    problem: `must be a number of processes from 1 to ${workersMax}, or auto for one per core`,
  };
}

/** More calls would not fit into the memory of any machine. */
const callsMax = 1_000_000;

function parseCalls(text: string): Parsed<number> {
  const value = Number(text);
  if (/^[1-9]\d*$/.test(text) && value <= callsMax) return { value };
  return { problem: `must be a number of calls from 1 to ${callsMax}` };
}

/** Orchestrators kill a process that takes longer to end. */
const drainDelaySecondsMax = 600;

function parseDrainDelay(text: string): Parsed<number> {
  const [, digits = "", unit] = /^(\d{1,6})(ms|s|m)$/.exec(text) ?? [];
  const value = Number(digits) * (unit === "ms" ? 1 : unit === "s" ? 1_000 : 60_000);
  if (unit !== undefined && value <= drainDelaySecondsMax * 1_000) return { value };
  return { problem: "must be a duration from 0s to 10m, such as 5s" };
}

function sameHostName(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined) return false;
  return new URL(one).hostname === new URL(other).hostname;
}

function sameAddress(one: ListenAddress, other: ListenAddress): boolean {
  return one.port !== 0 && one.port === other.port && one.host === other.host;
}

/**
 * Variables that version 0.1 read, and what to do in their place. They are named until version 0.4.
 */
const retired: Readonly<Record<string, string>> = {
  UAS_WARM_UP: "a gateway is ready when it can serve calls",
  UAS_REUSE_PORT: "use UAS_WORKERS and SIGHUP, or two gateways behind a load balancer",
};

function retiredVariables(env: Environment): string[] {
  return Object.keys(retired)
    .filter((name) => env[name] !== undefined)
    .map((name) => `${name}: has no effect any more, remove it: ${retired[name]}`);
}

function unknownVariables(env: Environment): string[] {
  return Object.keys(env)
    .filter(
      (name) => name.startsWith("UAS_") && !knownVariables.includes(name) && !(name in retired),
    )
    .toSorted()
    .map((name) => {
      const near = nearest(name, knownVariables);
      const guess = near === undefined ? "" : `, did you mean ${near}?`;
      return `${name}: unknown variable, it has no effect${guess}`;
    });
}

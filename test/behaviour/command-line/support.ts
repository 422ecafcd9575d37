import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConnectRouter, createRouterTransport } from "@connectrpc/connect";
import type {
  CliApp,
  CliContext,
  OpenBackendOptions,
  OpenOptions,
  ProbedVendor,
} from "../../../src/cli/context.ts";
import { type ExitCode, runCli } from "../../../src/cli/program.ts";
import { probeVendors } from "../../../src/app/vendor-probe.ts";
import { servedKinds as allKinds } from "../../../src/provider/index.ts";
import { servedKinds } from "../../unit/config/support.ts";

/** Result of a command. */
export interface Ran {
  readonly code: ExitCode;
  readonly out: string;
  readonly err: string;
  /** Options by which the services were opened; empty if they were not. */
  readonly opened: readonly OpenBackendOptions[];
  readonly closed: number;
  readonly served: readonly OpenOptions[];
  /** Names of files and folders that the command created in the working directory. */
  readonly created: readonly string[];
  /** The files of the working directory after the command, by name. */
  readonly texts: ReadonlyMap<string, string>;
}

interface World {
  /** Answers of the fake services. */
  readonly routes?: (router: ConnectRouter) => void;
  /** Besides the address of a database. */
  readonly env?: Readonly<Record<string, string>>;
  /** Files of the working directory, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Thrown instead of opening. */
  readonly refusal?: Error;
  /** Answers of vendors. Default: requests are sent. */
  readonly probed?: readonly ProbedVendor[];
  /** Answers of the user, in order. Default: there is no terminal. */
  readonly answers?: readonly string[];
  /** Whether all kinds of vendors are served. Default: two. */
  readonly hasAllKinds?: boolean;
}

/** Runs a command in an empty folder against fake services. */
export async function run(line: readonly string[], world: World = {}): Promise<Ran> {
  const {
    routes = () => {},
    env = {},
    files = {},
    refusal,
    hasAllKinds = false,
    probed,
    answers,
  } = world;
  const cwd = mkdtempSync(join(tmpdir(), "uas-cli-"));
  const seen = { out: "", err: "", closed: 0, asked: 0 };
  const opened: OpenBackendOptions[] = [];
  const served: OpenOptions[] = [];
  const app: CliApp = {
    async openBackend(options) {
      if (refusal) throw refusal;
      opened.push(options);
      const close = async () => void (seen.closed += 1);
      return { transport: createRouterTransport(routes), close };
    },
    async serve(options) {
      served.push(options);
    },
    rotateMasterKey: () => Promise.reject(new Error("not needed")),
    probeVendors: async (config) => probed ?? probeVendors(config),
    inspectDatabase: () => Promise.reject(new Error("not needed")),
  };
  const context: CliContext = {
    env: { DATABASE_URL: "postgresql://127.0.0.1/fake", ...env },
    cwd,
    version: "1.2.3",
    out: (text) => void (seen.out += text),
    err: (text) => void (seen.err += text),
    ...(answers && { ask: async () => answers[seen.asked++] ?? "" }),
    servedKinds: async () => (hasAllKinds ? allKinds : servedKinds),
    app: async () => app,
  };
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content);
    const code = await runCli(["node", "uas", ...line], context);
    const created = readdirSync(cwd).filter((name) => !(name in files));
    const texts = new Map(
      readdirSync(cwd, { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => [name, readFileSync(join(cwd, name), "utf8")]),
    );
    return { ...seen, code, opened, served, created, texts };
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
}

/** The JSON document that a command printed: exactly one, and nothing beside it. */
export async function runJson(line: readonly string[], world: World = {}) {
  const ran = await run([...line, "--json"], world);
  return { ...ran, json: JSON.parse(ran.out) as unknown };
}

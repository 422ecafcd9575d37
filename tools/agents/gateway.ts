/** The gateway that the agents call, before one strict simulated vendor of each style. */
import { openDatabase } from "../../src/db/database.ts";
import { startEmbedded } from "../../src/db/embedded/embedded.ts";
import type { TestDatabase } from "../../test/support/database.ts";
import { startGateway } from "../../test/support/gateway.ts";
import { createDatabase, dropDatabase, withDatabase } from "../../test/support/test-server.ts";
import { strictChat } from "../../test/support/upstream/chat-strict.ts";
import { strictGemini } from "../../test/support/upstream/gemini-strict.ts";
import { strictMessages } from "../../test/support/upstream/messages-strict.ts";
import { strictResponses } from "../../test/support/upstream/responses-strict.ts";
import type { StrictStyle } from "../../test/support/upstream/strict.ts";
import { startUpstream, type Upstream } from "../../test/support/upstream/upstream.ts";
import type { Door, Model } from "./agent.ts";

/** The gateway's door, and what to look at behind it. */
export interface AgentGateway extends Door {
  /** The models, one for each vendor style. */
  readonly models: readonly Model[];
  /** Returns the gateway's warnings and errors since the last call. */
  takeLog(): string[];
  /** The body that the vendor of a model got last. */
  lastSentTo(model: Model): string;
  /** All bodies that the vendor of a model got. */
  sentTo(model: Model): readonly string[];
  /** Returns violations of the rules for requests to vendors. */
  violations(): string[];
  /** Throws if the books are wrong, or money is still held. */
  close(): Promise<void>;
}

interface Vendor {
  readonly name: Model["vendor"];
  readonly style: () => StrictStyle;
  readonly kind: string;
  readonly dialects?: readonly string[];
  readonly baseUrl: (upstream: Upstream) => string;
  readonly nativePrefix?: string;
}

const vendors: readonly Vendor[] = [
  {
    name: "chat",
    style: () => strictChat(),
    kind: "openai-compatible",
    dialects: ["chat-completions"],
    baseUrl: ({ baseUrl }) => baseUrl,
  },
  {
    name: "responses",
    style: strictResponses,
    kind: "openai",
    dialects: ["responses"],
    baseUrl: ({ baseUrl }) => baseUrl,
  },
  {
    name: "messages",
    style: strictMessages,
    kind: "anthropic",
    baseUrl: ({ origin }) => origin,
  },
  {
    name: "gemini",
    style: strictGemini,
    kind: "gemini",
    baseUrl: ({ origin }) => origin,
    nativePrefix: "/gemini",
  },
];

/**
 * Starts both in this process: on the server of `DATABASE_URL`, else on an embedded one in
 * `folder`.
 */
export async function startAgentGateway(folder: string): Promise<AgentGateway> {
  const database = await openOwnDatabase(folder);
  const upstreams = new Map<Model["vendor"], Upstream>();
  for (const { name, style } of vendors) {
    upstreams.set(name, await startUpstream({ style: style() }));
  }
  const upstreamOf = (name: Model["vendor"]): Upstream => {
    const upstream = upstreams.get(name);
    if (upstream === undefined) throw new Error(`no vendor is called "${name}"`);
    return upstream;
  };
  const models = vendors.map(({ name }): Model => ({ key: `m-${name}`, vendor: name }));
  const gateway = await startGateway({
    database,
    vendors: Object.fromEntries(
      vendors.map(({ name, kind, dialects, baseUrl, nativePrefix }) => {
        const upstream = upstreamOf(name);
        const address = { baseUrl: baseUrl(upstream), apiKey: upstream.secret };
        return [name, { kind, dialects, nativePrefix, ...address }];
      }),
    ),
    models: Object.fromEntries(
      models.map(({ key, vendor }) => [key, { routes: [{ vendor, model: "vendor-model" }] }]),
    ),
  });
  const { key } = await gateway.customer();
  let logSeen = 0;
  return {
    origin: gateway.url,
    key,
    models,
    takeLog() {
      const lines = gateway.log.slice(logSeen);
      logSeen = gateway.log.length;
      return lines.filter(isComplaint);
    },
    lastSentTo: ({ vendor }) => upstreamOf(vendor).last().body.toString(),
    sentTo: ({ vendor }) => upstreamOf(vendor).requests.map(({ body }) => body.toString()),
    violations: () => [...upstreams.values()].flatMap(({ violations }) => violations),
    async close() {
      try {
        await gateway.close();
      } finally {
        for (const upstream of upstreams.values()) await upstream.close();
      }
    },
  };
}

/** Whether a line of the log is a warning or worse. */
function isComplaint(line: string): boolean {
  return /"level":(?:[4-6]0|"(?:warn|error|fatal)")/.test(line);
}

async function openOwnDatabase(dataDir: string): Promise<TestDatabase> {
  const database = await makeDatabase(dataDir);
  await (await openDatabase(database.url)).close();
  return database;
}

async function makeDatabase(dataDir: string): Promise<TestDatabase> {
  const adminUrl = process.env["DATABASE_URL"];
  if (adminUrl) {
    const name = await createDatabase(adminUrl, "template1");
    return { url: withDatabase(adminUrl, name), close: () => dropDatabase(adminUrl, name) };
  }
  const log = {
    info: (): void => {},
    warn: (line: string): void => void process.stderr.write(`${line}\n`),
  };
  const embedded = await startEmbedded({ dataDir, log, testing: true });
  return { url: embedded.url, close: () => embedded.stop() };
}

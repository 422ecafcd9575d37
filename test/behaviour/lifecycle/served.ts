/** A real process before a simulated vendor: what the tests of stopping and dying stand on. */
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Pool } from "pg";
import { auditLedger } from "../../../src/billing/audit/audit.ts";
import { createBillingJobs } from "../../../src/billing/jobs.ts";
import { createTestDatabase } from "../../support/database.ts";
import { type RawReply, send } from "../../support/raw-http.ts";
import { type Behaviour, type Exchange } from "../../support/upstream/exchange.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { makePlace, operatorToken, Process } from "./process.ts";
import { createServices } from "./services.ts";

/** See {@link openServed}. */
export type Served = Awaited<ReturnType<typeof openServed>>;

/** A process and where it listens. */
export type ServedProcess = Process & { readonly url: string; readonly internalUrl: string };

/** Opens a database, a vendor and a folder; starts processes on them. Close it. */
export async function openServed() {
  const database = await createTestDatabase();
  const upstream = await startUpstream();
  const place = makePlace({ "uas.yaml": yamlOf(upstream) });
  const pool = new Pool({ connectionString: database.url, max: 2 });
  const processes: Process[] = [];
  const masterKey = randomBytes(32).toString("base64");
  const env = {
    DATABASE_URL: database.url,
    VENDOR_KEY: upstream.secret,
    UAS_OPERATOR_TOKEN: operatorToken,
    UAS_MASTER_KEY: masterKey,
  };
  return {
    upstream,
    pool,
    ...createServices(database.url),
    databaseUrl: database.url,
    /** The master key of its processes, for others on the same database. */
    masterKey,
    /** Starts a gateway with a separate data folder. `more`: overrides of its environment. */
    async start(more: Readonly<Record<string, string>> = {}): Promise<ServedProcess> {
      const dataDir = join(place.folder, `data-${processes.length}`);
      const process = new Process(place, { ...env, UAS_DATA_DIR: dataDir, ...more });
      processes.push(process);
      return Object.assign(process, await process.listening());
    },
    /** Changes the configuration file; running processes keep what they have read. */
    configure(change: (yaml: string) => string): void {
      const file = join(place.folder, "uas.yaml");
      writeFileSync(file, change(readFileSync(file, "utf8")));
    },
    /** Returns the available balance of an account in nano-USD. */
    async available(accountId: string): Promise<bigint> {
      const text = "select available from balance where account_id = $1";
      const { rows } = await pool.query<{ available: string }>(text, [accountId]);
      return BigInt(rows[0]?.available ?? -1);
    },
    /** Held money of all accounts, in nano-USD. */
    async held(): Promise<bigint> {
      const { rows } = await pool.query<{ held: string }>(
        "select sum(held)::text as held from balance",
      );
      return BigInt(rows[0]?.held ?? 0);
    },
    /**
     * Lets every open hold expire now, and its process end, and sweeps: what living nodes do within
     * a minute.
     */
    async expireHolds(): Promise<number> {
      await pool.query("update node set ended = clock_timestamp()");
      await pool.query("update open_hold set expires_at = clock_timestamp() - interval '1 s'");
      return createBillingJobs({ pool }).recoverHolds();
    },
    audit: () => auditLedger(pool),
    async close(): Promise<void> {
      for (const process of processes) await process.kill();
      await pool.end();
      await upstream.close();
      await database.close();
      place.close();
    },
  };
}

function yamlOf({ baseUrl }: Upstream): string {
  const price = '{ input: "0.25", output: "2.00" }';
  return `version: 1
vendors:
  sim: { kind: openai-compatible, base_url: "${baseUrl}", api_key: "\${env:VENDOR_KEY}" }
models:
  m: { type: TEXT, routes: [{ vendor: sim, model: vendor-model }], max_output_tokens: 100, price: ${price} }
`;
}

/** A streamed chat completion. */
export function stream(url: string, key: string, requestId = "stream"): Promise<RawReply> {
  return send(`${url}/v1/chat/completions`, {
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "x-request-id": requestId,
    },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], stream: true }),
  });
}

/** A vendor that begins a stream and ends it on demand. */
export function gated(): {
  readonly behaviour: Behaviour;
  readonly begun: Promise<void>;
  /** Resolves when the reply was sent. */
  readonly finished: Promise<void>;
  finish(): void;
} {
  const begun = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const chunk = (delta: object, more: object = {}): Buffer =>
    Buffer.from(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`,
    );
  const behaviour = async (exchange: Exchange): Promise<void> => {
    exchange.response.writeHead(200, { "content-type": "text/event-stream" });
    await exchange.write(chunk({ content: "begun" }));
    begun.resolve();
    await gate.promise;
    await exchange.write(chunk({ content: " and finished" }));
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    await exchange.write(Buffer.from(`data: ${JSON.stringify({ choices: [], usage })}\n\n`));
    await exchange.write(Buffer.from("data: [DONE]\n\n"));
    exchange.response.end(finished.resolve);
  };
  return {
    behaviour,
    begun: begun.promise,
    finished: finished.promise,
    finish: () => gate.resolve(),
  };
}

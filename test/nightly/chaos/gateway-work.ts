/**
 * Whole gateways before a simulated vendor, and clients that ask them for streams and whole
 * replies.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "pg";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { createServices } from "../../behaviour/lifecycle/services.ts";
import { send } from "../../support/raw-http.ts";
import type { Exchange } from "../../support/upstream/exchange.ts";
import { startUpstream } from "../../support/upstream/upstream.ts";
import { chargesSql, type Checked, type Findings, note, noteAudit } from "./check.ts";
import { Child } from "./child.ts";
import { createRandom } from "./plan.ts";
import type { Site } from "./site.ts";
import type { Work } from "./work.ts";

/**
 * The usage that the vendor reports for each call. The gateway estimates 18 to 22 input tokens, a
 * quarter of the request's bytes: a call whose process dies is charged by that estimate, so at most
 * as much as a whole one.
 */
export const inputTokens = 25;
const usage = { prompt_tokens: inputTokens, completion_tokens: 20, total_tokens: inputTokens + 20 };

/** The cost of each whole call at the prices of gateway-child.ts, in nano-USD. */
const costNanos = 25n * 50n + 20n * 600n;

/** Pause of a client that is not served. */
const pauseMs = 20;

/** A call as its client saw it. */
interface Seen {
  /**
   * The reply is complete, with `[DONE]` in a stream: it is charged. A failed stream ends with an
   * error event and a regular end of the connection.
   */
  isWhole: boolean;
  /**
   * The status and end of a reply by which the gateway said that it had failed. Absent if it did
   * not.
   */
  failure?: string;
}

/** Whether a stream is complete. */
export function isWholeStream(body: Buffer): boolean {
  return body.toString().endsWith("data: [DONE]\n\n");
}

/** Opens it: a vendor, a customer, and clients as long as there are processes. */
export async function openGatewayWork(site: Site): Promise<Work> {
  const vendor = await startUpstream();
  vendor.always(speak);
  const customer = await createServices(site.directUrl).customer();
  const seen = new Map<string, Seen>();
  const clients: Promise<void>[] = [];
  const { url, dataDir } = site;
  return {
    passesMax: 12,
    async start(orders) {
      const { baseUrl, secret } = vendor;
      const plan = { url, dataDir, accountIds: [], history: "", ...orders };
      const child = Child.start("gateway-child", {
        ...plan,
        vendor: { kind: "openai-compatible", baseUrl, secret },
      });
      const address = await child.ready();
      if (address === undefined || orders.workers === 0) return child;
      const served = Promise.withResolvers<void>();
      for (let index = 0; index < orders.workers; index++) {
        const client = { address, key: customer.key, seen, onServed: served.resolve };
        clients.push(runClient(child, client));
      }
      // A process that is killed before it has done anything proves nothing.
      await Promise.race([served.promise, child.ended]);
      return child;
    },
    async check(findings) {
      await Promise.all(clients);
      return checkCalls(site.pool, { seen, costNanos }, findings);
    },
    close: () => vendor.close(),
  };
}

/** A message that the vendor refuses. */
const refusedText = "Refuse";

/** A short stream with pauses and usage; the same as a whole reply; or a refusal. */
async function speak(exchange: Exchange): Promise<void> {
  if (exchange.request.body.includes(refusedText)) {
    exchange.response.writeHead(400, { "content-type": "application/json" });
    exchange.response.end(JSON.stringify({ error: { message: "no", type: "invalid_request" } }));
    return;
  }
  if (!exchange.request.body.includes('"stream":true')) {
    await sleep(usage.completion_tokens);
    const message = { role: "assistant", content: "word".repeat(usage.completion_tokens) };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    exchange.response.writeHead(200, { "content-type": "application/json" });
    exchange.response.end(JSON.stringify({ object: "chat.completion", choices, usage }));
    return;
  }
  const random = createRandom(exchange.request.body.length + Date.now());
  const say = (event: object): Promise<boolean> =>
    exchange.write(Buffer.from(`data: ${JSON.stringify(event)}\n\n`));
  exchange.response.writeHead(200, { "content-type": "text/event-stream" });
  for (let piece = 0; piece < usage.completion_tokens; piece++) {
    await say({ choices: [{ index: 0, delta: { content: "word" }, finish_reason: null }] });
    await sleep(random() * 5);
  }
  await say({ choices: [], usage });
  await exchange.write(Buffer.from("data: [DONE]\n\n"));
  exchange.response.end();
}

interface Client {
  readonly address: string;
  readonly key: string;
  readonly seen: Map<string, Seen>;
  /** Called when a call is over. */
  readonly onServed: () => void;
}

/** Stored bytes of a failed reply: its error event. */
const failureBytes = 200;

/**
 * Requests of clients, in turns: a stream with a limit, a stream whose hold must grow, a whole
 * reply, and a stream that the vendor refuses.
 */
const requests = [
  { messages: [{ role: "user", content: "Hi" }], max_tokens: 20, stream: true },
  { messages: [{ role: "user", content: "Hi" }], stream: true },
  { messages: [{ role: "user", content: "Hi" }], max_tokens: 20, stream: false },
  { messages: [{ role: "user", content: refusedText }], max_tokens: 20, stream: true },
];

/** One call after another, as long as the process lives. */
async function runClient(child: Child, { address, key, seen, onServed }: Client): Promise<void> {
  for (let count = 0; child.isRunning; count++) {
    const requestId = randomUUID();
    const call: Seen = { isWhole: false };
    seen.set(requestId, call);
    const request = requests[count % requests.length];
    try {
      const { status, isCut, body } = await send(`${address}/v1/chat/completions`, {
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          "x-request-id": requestId,
        },
        body: JSON.stringify({ model: "m", ...request }),
      });
      const hasEnded = request?.stream === false || isWholeStream(body);
      call.isWhole = status === 200 && !isCut && hasEnded;
      const isRefused = status >= 500 || (status === 200 && !call.isWhole);
      if (isRefused && !isCut)
        call.failure = `${status} ${body.subarray(-failureBytes).toString()}`;
      onServed();
      if (status !== 200) await sleep(pauseMs);
    } catch {
      await sleep(pauseMs);
    }
  }
}

interface Recorded {
  readonly request_id: string;
  readonly ending: number;
  readonly cost: string;
  readonly charged: string;
}

/**
 * Calls as clients saw them, by request ID, and the cost of a whole call in nano-USD, which is the
 * maximum charge.
 */
interface SeenCalls {
  readonly seen: ReadonlyMap<string, Seen>;
  readonly costNanos: bigint;
}

/** Compares the records of calls by request id with what their clients saw. */
export async function checkCalls(
  pool: Pool,
  { seen, costNanos: wholeNanos }: SeenCalls,
  findings: Findings,
): Promise<Checked> {
  const answer = await pool.query<Recorded>(`
    select c.request_id, c.ending, c.cost::text as cost,
        coalesce(e.charged, 0)::text as charged
      from call c left join ${chargesSql} e on e.id = c.id
      where c.request_id <> ''`);
  const recorded = Map.groupBy(answer.rows, (row) => row.request_id);
  let settled = 0;
  for (const [requestId, { isWhole }] of seen) {
    if (isWhole) settled++;
    const rows = recorded.get(requestId) ?? [];
    checkCall({ requestId, isWhole, wholeNanos, rows }, findings);
  }
  await noteAudit(pool, findings);
  return { calls: seen.size, settled };
}

function checkCall(
  {
    requestId,
    isWhole,
    wholeNanos,
    rows,
  }: {
    readonly requestId: string;
    readonly isWhole: boolean;
    readonly wholeNanos: bigint;
    readonly rows: readonly Recorded[];
  },
  findings: Findings,
): void {
  const [row] = rows;
  if (rows.length > 1) note(findings, "doubled", `${requestId} has ${rows.length} records`);
  if (row === undefined) {
    if (isWhole) note(findings, "lost", `${requestId} came whole and has no record`);
    return;
  }
  const { ending, cost, charged } = row;
  if (BigInt(charged) > wholeNanos) note(findings, "doubled", `${requestId} is charged ${charged}`);
  if (charged !== cost) note(findings, "drift", `${requestId} costs ${cost}, charged ${charged}`);
  const isRight = ending === CallEnding.COMPLETED && BigInt(charged) === wholeNanos;
  if (isWhole && !isRight) {
    note(findings, "lost", `${requestId} came whole: ending ${ending}, charged ${charged}`);
  }
}

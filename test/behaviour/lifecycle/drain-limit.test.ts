/** Streams that outlive the drain: their clients hear why, and nothing stays held. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { request as httpRequest } from "node:http";
import { Pool } from "pg";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { exchangeOf, inferenceOf, readExchange, bearer, withTransport } from "../rpc/harness.ts";
import { type Customer, type Gateway, publicModel, startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";
import { answer, flood } from "../../support/upstream/behaviour.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";

let upstream: Upstream;
let gateway: Gateway;
let customer: Customer;
beforeEach(async () => {
  upstream = await startUpstream();
  const { baseUrl, secret } = upstream;
  gateway = await startGateway({ vendors: { sim: { baseUrl, apiKey: secret } } });
  customer = await gateway.customer();
});
afterEach(async () => {
  await gateway?.close();
  await upstream?.close();
});

const path = "/v1/chat/completions";
const body = JSON.stringify({
  model: publicModel,
  messages: [{ role: "user", content: "Hi" }],
  stream: true,
});

function headers(): Record<string, string> {
  return { ...bearer(customer.key), "content-type": "application/json" };
}

/** Returns the records of all calls. The gateway is closed, so the database is queried. */
async function recorded(count = 1): Promise<Array<Record<string, unknown>>> {
  const pool = new Pool({ connectionString: gateway.databaseUrl, max: 1 });
  try {
    const { rows } = await pool.query<Record<string, unknown>>(
      "select ending, status, error_code, cost, held from call",
    );
    expect(rows).toHaveLength(count);
    return rows;
  } finally {
    await pool.end();
  }
}

describe("R-ERR-6: a stream that is longer than the drain", () => {
  it("a REST stream that is longer than the drain ends with an error event and without [DONE], is charged and recorded", async () => {
    upstream.script(answer({ cutAfter: 4, ending: "hang" }));
    const running = send(`${gateway.url}${path}`, { headers: headers(), body });
    const request = await upstream.request(1);
    await expect.poll(() => request.written).toBe(4);
    await gateway.app.close({ drainMs: 20 });
    const reply = await running;
    const text = reply.body.toString();
    expect(reply).toMatchObject({ status: 200, isCut: false });
    expect(text).toContain("Hello");
    expect(text).not.toContain("[DONE]");
    const last = text.trim().split("\n").at(-1) ?? "";
    expect(JSON.parse(last.replace(/^data: /, ""))).toMatchObject({
      error: { code: "service_unavailable", type: "api_error" },
    });
    expect(await request.left).toBe(true);
    const [record] = await recorded();
    expect(record).toMatchObject({
      ending: CallEnding.GATEWAY_STOPPED,
      status: 200,
      error_code: "service_unavailable",
    });
    expect(Number(record?.["cost"])).toBeGreaterThan(0);
  });

  it("a stream that the drain ends before its first byte is a 503 in style, free", async () => {
    upstream.script(answer({ delayMs: 60_000 }));
    const running = send(`${gateway.url}${path}`, { headers: headers(), body });
    await upstream.request(1);
    await gateway.app.close({ drainMs: 20 });
    const reply = await running;
    expect(reply).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    expect(JSON.parse(reply.body.toString())).toMatchObject({
      error: { code: "service_unavailable" },
    });
    expect(await recorded()).toMatchObject([{ ending: CallEnding.GATEWAY_STOPPED, cost: "0" }]);
  });

  it.each(["grpc", "connect"] as const)(
    "a %s stream that is longer than the drain ends with the same event",
    async (protocol) => {
      upstream.script(answer({ cutAfter: 4, ending: "hang" }));
      await withTransport(gateway.internalUrl, protocol, async (transport) => {
        const exchange = exchangeOf(publicModel, { stream: true });
        const running = readExchange(
          inferenceOf(transport).exchange(exchange, { headers: bearer(customer.key) }),
        );
        const request = await upstream.request(1);
        await expect.poll(() => request.written).toBe(4);
        const closed = gateway.app.close({ drainMs: 20 });
        const { body: text } = await running;
        expect(text).not.toContain("[DONE]");
        expect(text).toMatch(/"code":"service_unavailable"/);
        await closed;
      });
      expect(await recorded()).toMatchObject([{ ending: CallEnding.GATEWAY_STOPPED }]);
    },
  );

  it("R-MON-2: clients that read nothing hold up neither the stop nor their settlement", async () => {
    // Connect's adapter reports a cut connection to standard error.
    vi.spyOn(console, "error").mockReturnValue();
    upstream.always(flood(256 * 1024 * 1024));
    const clients = [
      readNothing(`${gateway.url}${path}`, "application/json", body),
      readNothing(`${gateway.internalUrl}${exchangePath}`, "application/connect+json", envelope()),
    ];
    const requests = [await upstream.request(1), await upstream.request(2)];
    const areBlocked = (): boolean => requests.every(({ isBlocked }) => isBlocked);
    await expect.poll(areBlocked).toBe(true);
    await gateway.app.close({ drainMs: 20 });
    const stopped = { ending: CallEnding.GATEWAY_STOPPED, status: 200 };
    expect(await recorded(2)).toMatchObject([stopped, stopped]);
    for (const leave of clients) await leave();
  });
});

const exchangePath = "/uas.inference.v1.InferenceService/Exchange";

/** The exchange as a Connect stream of one JSON message. */
function envelope(): Buffer {
  const dialect = "DIALECT_CHAT_COMPLETIONS";
  const message = JSON.stringify({ dialect, path, body: Buffer.from(body).toString("base64") });
  const head = Buffer.alloc(5);
  head.writeUInt32BE(Buffer.byteLength(message), 1);
  return Buffer.concat([head, Buffer.from(message)]);
}

/** Asks, and takes nothing of the answer. Returns what ends it. */
function readNothing(url: string, type: string, sent: string | Buffer): () => Promise<unknown> {
  const client = httpRequest(url, {
    method: "POST",
    headers: { ...headers(), "content-type": type },
    agent: false,
  });
  const closed = new Promise((resolve) => client.once("close", resolve));
  client.on("error", () => {});
  client.on("response", (response) => response.pause().on("error", () => {}));
  client.end(sent);
  return () => {
    client.destroy();
    return closed;
  };
}

/**
 * R-MON-12: a vendor that ignores the output limit of a request gives no client more than it pays
 * for.
 */
import { createClient } from "@connectrpc/connect";
import { describe, expect, it, onTestFinished } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { bearer, operatorToken, withTransport } from "../rpc/harness.ts";
import { type Gateway, priceDefault, startGateway } from "../../support/gateway.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { endless } from "../../support/upstream/endless.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { ask, newRequestId, useGateway } from "../harness.ts";

const fixture = useGateway();
const tokenNanos = (priceDefault.output ?? 0n) / 1_000_000n;
/** As much as the slack of a small limit can cost beyond what is held. */
const slackNanos = 70n * tokenNanos;
const balanceNanos = 10_000_000n;
const limited = { ...ask, max_completion_tokens: 1 };

/** A vendor that does not know the member that limits the reply. */
const excess = answer({
  text: Array.from({ length: 512 }, () => "far too long, "),
  usage: { prompt_tokens: 11, completion_tokens: 4_096, total_tokens: 4_107 },
});

/** Sends a chat completion. @param url the address of a gateway */
function send(url: string, key: string, body: object, id = newRequestId()): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { ...bearer(key), "content-type": "application/json", "x-request-id": id },
    body: JSON.stringify(body),
  });
}

describe("60 calls at once that ask for one token, at a vendor that makes 4,096", () => {
  it("whole replies are delivered only as far as the balance pays for them", async () => {
    fixture.upstream.always(excess);
    const { key, accountId } = await fixture.gateway.customer({ balanceNanos });
    const replies = await Promise.all(
      Array.from({ length: 60 }, () => send(fixture.gateway.url, key, limited)),
    );
    const bodies = await Promise.all(replies.map((reply) => reply.json()));
    const served = replies.filter(({ status }) => status === 200).length;
    expect(served).toBeLessThanOrEqual(1);
    for (const [index, { status }] of replies.entries()) {
      if (status === 200) continue;
      expect(bodies[index]).toMatchObject({ error: { code: "insufficient_balance" } });
      expect(status).toBe(402);
    }
    const { balance } = await fixture.gateway.money(accountId);
    const servedNanos = BigInt(served) * 4_096n * tokenNanos;
    expect(balanceNanos - balance).toBeGreaterThanOrEqual(servedNanos);
  });

  it("what was not delivered is the operator's loss, at the model's price where the route has no cost", async () => {
    const { gateway, upstream } = await freshGateway();
    upstream.always(excess);
    const { key } = await gateway.customer({ balanceNanos: 1_000_000n });
    const id = newRequestId();
    expect((await send(gateway.url, key, limited, id)).status).toBe(402);
    const { cost } = await gateway.call(id);
    const lossNanos = 4_096n * tokenNanos + (11n * (priceDefault.input ?? 0n)) / 1_000_000n;
    expect(cost?.amountNanos).toBe(0n);
    const metrics = await (await fetch(`${gateway.internalUrl}/metrics`)).text();
    expect(metrics).toContain(`uas_platform_loss_nanos_total{reason="withheld"} ${lossNanos}`);
  });

  it("streams end where the balance ends", async () => {
    const { gateway, upstream } = await freshGateway();
    upstream.always(endless("chat", "text", 4_096));
    const { key, accountId } = await gateway.customer({ balanceNanos });
    const texts = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const reply = await send(gateway.url, key, { ...limited, stream: true });
        return reply.status === 200 ? await reply.text() : "";
      }),
    );
    const text = texts.join("");
    const pieces = text.split("go on :)").length - 1;
    const { balance } = await gateway.money(accountId);
    const [served, paid] = [BigInt(pieces) * 2n * tokenNanos, balanceNanos - balance];
    const running = BigInt(texts.filter((one) => one !== "").length);
    // Data in flight when a stream is stopped arrives in one read of the socket.
    expect(served).toBeLessThanOrEqual(paid + running * 3n * slackNanos);
    expect(text).toContain('"finish_reason":"length"');
  });

  it("never spend more than the limit of their key", async () => {
    const { gateway, upstream } = await freshGateway();
    upstream.always(excess);
    const { key, accountId } = await gateway.customer({ keyLimitNanos: balanceNanos });
    await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const stream = index % 2 === 0;
        const reply = await send(gateway.url, key, { ...limited, stream });
        await reply.text();
      }),
    );
    const { balance } = await gateway.money(accountId);
    expect(100_000_000_000n - balance).toBeLessThanOrEqual(balanceNanos);
  });
});

describe("a route whose vendor has ignored limits (R-MON-12)", () => {
  /** Two gateways on one database, and what calls of an account hold there. */
  async function twoGateways() {
    const { gateway, upstream } = await freshGateway();
    const sim = { baseUrl: upstream.baseUrl, apiKey: upstream.secret };
    const other = await startGateway({
      vendors: { sim },
      settings: { operatorToken },
      databaseAt: () => Promise.resolve(gateway.databaseUrl),
    });
    onTestFinished(() => other.close());
    const heldOf = async (url: string, key: string): Promise<bigint> => {
      const id = newRequestId();
      await (await send(url, key, limited, id)).text();
      return (await gateway.call(id)).held?.amountNanos ?? 0n;
    };
    const newKey = async (): Promise<string> => (await gateway.customer()).key;
    const alarms = (): number =>
      gateway.log.filter((line) => line.includes("ignores the output limit")).length;
    return { gateway, other, upstream, heldOf, newKey, alarms };
  }

  it("one account's replies above their limits raise its own holds only, until as many kept theirs", async () => {
    const { gateway, upstream, heldOf, newKey, alarms } = await twoGateways();
    const [key, stranger] = [await newKey(), await newKey()];
    upstream.always(answer({ text: ["x"] }));
    const ordinary = await heldOf(gateway.url, key);
    upstream.always(excess);
    for (let at = 0; at < 5; at++) await heldOf(gateway.url, key);
    upstream.always(answer({ text: ["x"] }));
    expect(await heldOf(gateway.url, stranger)).toBe(ordinary);
    expect(await heldOf(gateway.url, key)).toBeGreaterThan(ordinary);
    expect(alarms()).toBe(0);
    for (let at = 0; at < 4; at++) await heldOf(gateway.url, key);
    expect(await heldOf(gateway.url, key)).toBe(ordinary);
  });

  it("several replies of several accounts mark it for all, in all processes, until it keeps limits again", async () => {
    const { gateway, other, upstream, heldOf, newKey, alarms } = await twoGateways();
    upstream.always(answer({ text: ["x"] }));
    const ordinary = await heldOf(gateway.url, await newKey());
    upstream.always(excess);
    const [first, second] = [await newKey(), await newKey()];
    for (const key of [first, first, second]) await heldOf(gateway.url, key);
    expect(alarms()).toBe(1);
    const marked = await heldOf(gateway.url, await newKey());
    expect(marked).toBeGreaterThan(ordinary);
    // The other process learns of it from the database.
    await expect.poll(async () => heldOf(other.url, await newKey())).toBe(marked);
    upstream.always(answer({ text: ["x"] }));
    await expect
      .poll(async () => heldOf(gateway.url, await newKey()), { timeout: 30_000 })
      .toBe(ordinary);
    await expect
      .poll(async () => heldOf(other.url, await newKey()), { timeout: 30_000 })
      .toBe(ordinary);
    expect(alarms()).toBe(1);
  });

  it("an operator clears the mark in all processes", async () => {
    const { gateway, other, upstream, heldOf, newKey } = await twoGateways();
    upstream.always(answer({ text: ["x"] }));
    const ordinary = await heldOf(gateway.url, await newKey());
    upstream.always(excess);
    const [first, second] = [await newKey(), await newKey()];
    for (const key of [first, first, second]) await heldOf(gateway.url, key);
    upstream.always(answer({ text: ["x"] }));
    await withTransport(other.internalUrl, "connect", (transport) =>
      createClient(OperatorService, transport).clearUnlimitedModel(
        { vendor: "sim", model: "vendor-model" },
        { headers: bearer(operatorToken) },
      ),
    );
    for (const { url } of [gateway, other]) {
      await expect
        .poll(async () => heldOf(url, await newKey()), { timeout: 30_000 })
        .toBe(ordinary);
    }
  });
});

describe("a reply of a few tokens more than its limit", () => {
  it("is delivered and charged as its vendor counted it", async () => {
    const { gateway, upstream } = await freshGateway();
    upstream.always(
      answer({ usage: { prompt_tokens: 11, completion_tokens: 9, total_tokens: 20 } }),
    );
    const { key } = await gateway.customer();
    const id = newRequestId();
    const reply = await send(gateway.url, key, { ...ask, max_completion_tokens: 8 }, id);
    expect(reply.status).toBe(200);
    const call = await gateway.call(id);
    expect(call).toMatchObject({ ending: CallEnding.COMPLETED });
    expect(call.cost?.amountNanos).toBe(11n * 250n + 9n * tokenNanos);
  });
});

/** A gateway whose routes are not marked, until the end of the test. */
async function freshGateway(): Promise<{ readonly gateway: Gateway; readonly upstream: Upstream }> {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const { baseUrl, secret: apiKey } = upstream;
  const gateway = await startGateway({ vendors: { sim: { baseUrl, apiKey } } });
  onTestFinished(() => gateway.close());
  return { gateway, upstream };
}

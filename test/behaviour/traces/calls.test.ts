/** Traces of calls, as a collector receives them. */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { startGateway, type Gateway, type GatewayOptions } from "../../support/gateway.ts";
import {
  type OtlpReceiver,
  type ReceivedSpan,
  startOtlpReceiver,
} from "../../support/otlp-receiver.ts";
import { answer, failure } from "../../support/upstream/behaviour.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { ask, newRequestId } from "../harness.ts";
import { send } from "../../support/raw-http.ts";

let upstream: Upstream;
let collector: OtlpReceiver;
beforeAll(async () => {
  upstream = await startUpstream();
  collector = await startOtlpReceiver();
});
afterEach(() => {
  upstream.clear();
  vi.unstubAllEnvs();
});
afterAll(async () => {
  await upstream?.close();
  await collector?.close();
});

/** Runs a gateway whose traces go to the collector, unless the variables say otherwise. */
async function traced(
  env: Readonly<Record<string, string>>,
  work: (gateway: Gateway, key: string) => Promise<void>,
  more: Partial<GatewayOptions> = {},
): Promise<void> {
  const usual = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "10" };
  for (const [name, value] of Object.entries({ ...usual, ...env })) vi.stubEnv(name, value);
  const vendors = { sim: { baseUrl: upstream.baseUrl, apiKey: upstream.secret } };
  const gateway = await startGateway({ vendors, ...more });
  try {
    await work(gateway, (await gateway.customer()).key);
  } finally {
    await gateway.close();
  }
}

function chat(gateway: Gateway, key: string, headers: Readonly<Record<string, string>>, body = {}) {
  const usual = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return send(`${gateway.url}/v1/chat/completions`, {
    headers: { ...usual, ...headers },
    body: JSON.stringify({ ...ask, ...body }),
  });
}

/** The spans of a call, the server's first. */
async function spansOf(requestId: string): Promise<ReceivedSpan[]> {
  const server = (): ReceivedSpan | undefined =>
    collector.spans.find(({ attributes }) => attributes["uas.request_id"] === requestId);
  await expect.poll(server).toBeDefined();
  const { traceId } = server() as ReceivedSpan;
  const spans = collector.spans.filter((each) => each.traceId === traceId);
  return spans.toSorted(({ startNanos: a }, { startNanos: b }) => (a < b ? -1 : 1));
}

const traceId = "0af7651916cd43dd8448eb211c80319c";
const parentId = "b7ad6b7169203331";
const sampled = `00-${traceId}-${parentId}-01`;

describe("with a collector", () => {
  it("a stream has a server span with the waits of the ledger, and a span for the attempt", async () => {
    const requestId = newRequestId();
    const env = {
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer collector",
      OTEL_SERVICE_NAME: "gateway-of-test",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    };
    await traced(env, async (gateway, key) => {
      upstream.script(answer({ text: ["canary of the reply"] }));
      await chat(gateway, key, { "x-request-id": requestId }, { stream: true, max_tokens: 50 });
    });
    const [server, attempt, ...others] = await spansOf(requestId);
    expect(others).toEqual([]);
    expect(server).toMatchObject({
      name: "POST /v1/chat/completions",
      kind: 2,
      parentId: "",
      status: 0,
      attributes: {
        "http.request.method": "POST",
        "http.route": "/v1/chat/completions",
        "http.response.status_code": 200,
        "uas.model": "public-model",
        "uas.ending": "completed",
        "uas.cost.currency": "USD",
        "uas.cost.amount": (11 * 250 + 7 * 2_000) / 1e9,
      },
      resource: { "service.name": "gateway-of-test", "deployment.environment.name": "test" },
    });
    expect(Object.keys(server?.attributes ?? {})).toEqual(
      expect.arrayContaining(["uas.account.id", "uas.key.id", "uas.call_id"]),
    );
    expect(server?.events.map(({ name }) => name)).toEqual(["uas.hold", "uas.settle"]);
    expect(attempt).toMatchObject({
      name: "chat vendor-model",
      kind: 3,
      parentId: server?.spanId,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "sim",
        "gen_ai.request.model": "vendor-model",
        "gen_ai.request.stream": true,
        "gen_ai.request.max_tokens": 50,
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "server.address": "127.0.0.1",
      },
    });
    expect(attempt?.attributes["gen_ai.response.time_to_first_chunk"]).toBeGreaterThan(0);
    const { path, headers } = collector.requests.at(-1) ?? { path: "", headers: {} };
    expect([path, headers.authorization]).toEqual(["/v1/traces", "Bearer collector"]);
    // Traces have no content: neither of the request nor of the reply.
    const all = JSON.stringify([server, attempt], (_, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
    expect(all).not.toMatch(/Say hello|canary/);
  });

  it("each attempt has a span, and a failed call the word of its error", async () => {
    const [answered, failed] = [newRequestId(), newRequestId()];
    const routes = [
      { vendor: "sim", model: "vendor-model", priority: 0 },
      { vendor: "other", model: "vendor-model", priority: 1 },
    ];
    const vendor = { baseUrl: upstream.baseUrl, apiKey: upstream.secret };
    const models = { "public-model": { routes, retry: { attempts: 2, withinMs: 20_000 } } };
    const more = { vendors: { sim: vendor, other: vendor }, models };
    const work = async (gateway: Gateway, key: string): Promise<void> => {
      upstream.script(failure(500), answer(), failure(500), failure(500));
      await chat(gateway, key, { "x-request-id": answered });
      await chat(gateway, key, { "x-request-id": failed });
    };
    await traced({}, work, more);
    const [good, ...tried] = await spansOf(answered);
    expect([good?.status, good?.attributes["http.response.status_code"]]).toEqual([0, 200]);
    expect(tried.map(({ status, attributes }) => [status, attributes["uas.vendor"]])).toEqual([
      [2, "sim"],
      [0, "other"],
    ]);
    const [bad, ...attempts] = await spansOf(failed);
    expect(bad).toMatchObject({
      status: 2,
      attributes: { "error.type": "upstream_error", "http.response.status_code": 502 },
    });
    expect(attempts.map(({ status }) => status)).toEqual([2, 2]);
  });

  it("continues the trace of a client, and sends no trace header to the vendor", async () => {
    const requestId = newRequestId();
    await traced({}, async (gateway, key) => {
      await chat(gateway, key, { "x-request-id": requestId, traceparent: sampled });
      expect(gateway.log.some((line) => line.includes(`"traceId":"${traceId}"`))).toBe(true);
    });
    const [server] = await spansOf(requestId);
    expect([server?.traceId, server?.parentId]).toEqual([traceId, parentId]);
    expect(upstream.requests[0]?.headers["traceparent"]).toBeUndefined();
  });

  it.each([
    ["parentbased_always_on", `00-${traceId}-${parentId}-00`],
    ["always_off", sampled],
    ["parentbased_traceidratio", undefined],
  ])("sampler %s with the header %s sends nothing", async (sampler, traceparent) => {
    const before = collector.spans.length;
    const env = { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: "0" };
    await traced(env, async (gateway, key) => {
      const { status } = await chat(gateway, key, { ...(traceparent && { traceparent }) });
      expect(status).toBe(200);
    });
    expect(collector.spans).toHaveLength(before);
  });
});

it.each([0, 503])(
  "a collector with status %d (0: hangs) delays no call, and what is lost is counted",
  async (status) => {
    const broken = await startOtlpReceiver(status);
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: broken.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: "200",
      OTEL_BSP_MAX_QUEUE_SIZE: "4",
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "4",
    };
    await traced(env, async (gateway, key) => {
      for (let call = 0; call < 10; call++) {
        expect((await chat(gateway, key, {})).status).toBe(200);
      }
      const lost = async (): Promise<number> => {
        const metric = await gateway.app.metrics.spansDropped.get();
        return metric.values.reduce((sum, { value }) => sum + value, 0);
      };
      await expect.poll(lost).toBeGreaterThan(0);
      await expect
        .poll(() => gateway.log.filter((line) => line.includes("traces could not be sent")).length)
        .toBe(1);
    });
    await broken.close();
  },
);

it("without a collector nothing of OpenTelemetry is used", async () => {
  const before = collector.requests.length;
  const none = { OTEL_EXPORTER_OTLP_ENDPOINT: "" };
  await traced(none, async (gateway, key) => {
    expect((await chat(gateway, key, { traceparent: sampled })).status).toBe(200);
    expect(gateway.log.some((line) => line.includes("traceId"))).toBe(false);
  });
  expect(collector.requests).toHaveLength(before);
});

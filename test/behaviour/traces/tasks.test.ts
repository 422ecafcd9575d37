/** Traces of tasks and webhooks, which refer to the submit. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import {
  type OtlpReceiver,
  type ReceivedSpan,
  startOtlpReceiver,
} from "../../support/otlp-receiver.ts";
import { send } from "../../support/raw-http.ts";
import { caFile, type Receiver, startReceiver } from "../../support/receiver.ts";

let collector: OtlpReceiver;
let receiver: Receiver;
let gateway: Gateway;
beforeAll(async () => {
  collector = await startOtlpReceiver();
  receiver = await startReceiver();
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: "10",
    // Of new traces nothing is sampled: only what a sampled client causes.
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0",
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  gateway = await startGateway({
    vendors: { demo: { kind: "demo", baseUrl: "" } },
    models: { demo: { routes: [{ vendor: "demo", model: "instant" }] } },
    webhooks: { allowHosts: ["localhost"], caFile },
  });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await gateway?.close();
  await receiver?.close();
  await collector?.close();
});

async function submit(traceparent: string): Promise<unknown> {
  const { key } = await gateway.customer();
  const callbackUrl = `${receiver.origin}/hook`;
  const { status } = await send(`${gateway.url}/api/ai/tasks`, {
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", traceparent },
    body: JSON.stringify({ modelKey: "demo", callbackUrl, textParams: { prompt: "Hello" } }),
  });
  return status;
}

it("the trace of a task and of its webhook refer to the submit, which continues the client's", async () => {
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  expect(await submit(`00-${traceId}-b7ad6b7169203331-01`)).toBe(200);
  await receiver.arrived(1);
  const named = (name: string): ReceivedSpan | undefined =>
    collector.spans.find((span) => span.name === name);
  await expect.poll(() => named("POST webhook")).toBeDefined();
  const submitted = named("submit task demo");
  expect(submitted).toMatchObject({ traceId, parentId: "b7ad6b7169203331", kind: 4 });
  const link = [[traceId, submitted?.spanId]];
  const task = named("task demo");
  expect(task).toMatchObject({
    kind: 5,
    links: link,
    attributes: {
      "uas.task.id": submitted?.attributes["uas.task.id"],
      "uas.ending": "completed",
    },
  });
  expect(task?.traceId).not.toBe(traceId);
  expect(named("POST webhook")).toMatchObject({
    kind: 3,
    links: link,
    attributes: { "http.response.status_code": 204, "server.address": "localhost" },
  });
});

it("a task of a client that is not sampled has no trace", async () => {
  const traceId = "1af7651916cd43dd8448eb211c80319c";
  expect(await submit(`00-${traceId}-b7ad6b7169203331-00`)).toBe(200);
  await receiver.arrived(2);
  const ofTask = ({ traceId: own, links }: ReceivedSpan): boolean =>
    own === traceId || links.some(([linked]) => linked === traceId);
  expect(collector.spans.filter(ofTask)).toEqual([]);
});

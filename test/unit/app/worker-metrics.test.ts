/** The metrics of several workers as one text. */
import { beforeEach, expect, it } from "vitest";
import { createMetrics, type Metrics, type MetricSnapshot } from "../../../src/observe/metrics.ts";
import { WorkerMetrics } from "../../../src/app/supervisor.ts";

let all: WorkerMetrics;
let first: Metrics;
let second: Metrics;
beforeEach(() => {
  all = new WorkerMetrics();
  first = createMetrics();
  second = createMetrics();
});

/** Returns the data that a worker sends. */
async function sent({ registry }: Metrics): Promise<readonly MetricSnapshot[]> {
  return structuredClone(
    (await registry.getMetricsAsJSON()).map((each) => ({
      ...each,
      collect: undefined,
      get: undefined,
    })),
  ) as unknown as MetricSnapshot[];
}

async function told(): Promise<void> {
  all.update(1, await sent(first));
  all.update(2, await sent(second));
}

function restart(worker: number): void {
  all.keep(worker);
  all.countRestart();
}

async function lines(start: string): Promise<string[]> {
  return (await all.read()).split("\n").filter((line) => line.startsWith(start));
}

it("counters and histograms of workers are added up by their labels", async () => {
  for (const status of [200, 200, 429]) first.countRequest("/v1/messages", status);
  second.countRequest("/v1/messages", 200);
  second.countRequest("/v1/responses", 200);
  first.overhead.observe(0.0004);
  second.overhead.observe(0.0007);
  second.overhead.observe(7);
  await told();
  expect((await lines("uas_requests_total{")).toSorted()).toEqual([
    'uas_requests_total{route="/v1/messages",status="200"} 3',
    'uas_requests_total{route="/v1/messages",status="429"} 1',
    'uas_requests_total{route="/v1/responses",status="200"} 1',
  ]);
  expect(await lines("uas_gateway_overhead_seconds")).toEqual(
    expect.arrayContaining([
      'uas_gateway_overhead_seconds_bucket{le="0.0005"} 1',
      'uas_gateway_overhead_seconds_bucket{le="0.001"} 2',
      'uas_gateway_overhead_seconds_bucket{le="1"} 2',
      'uas_gateway_overhead_seconds_bucket{le="+Inf"} 3',
      "uas_gateway_overhead_seconds_sum 7.0011",
      "uas_gateway_overhead_seconds_count 3",
    ]),
  );
});

it("gauges are added up where each worker has its own, and the greatest counts where each reports the whole database", async () => {
  first.requestsInFlight.inc();
  second.requestsInFlight.inc();
  for (const metrics of [first, second]) metrics.tasks.set({ state: "running" }, 5);
  first.tasks.set({ state: "running" }, 6);
  first.gauge("uas_webhooks_pending", () => 3);
  second.gauge("uas_webhooks_pending", () => 4);
  await told();
  expect(await lines("uas_requests_in_flight ")).toEqual(["uas_requests_in_flight 2"]);
  expect(await lines("uas_tasks{")).toEqual(['uas_tasks{state="running"} 6']);
  expect(await lines("uas_webhooks_pending ")).toEqual(["uas_webhooks_pending 4"]);
});

it("the counts of a dead worker are kept, so that no counter falls; its gauges go", async () => {
  for (let request = 0; request < 5; request++) first.countRequest("/v1/messages", 200);
  second.countRequest("/v1/messages", 200);
  first.requestsInFlight.inc();
  second.requestsInFlight.inc();
  first.overhead.observe(0.0004);
  await told();
  restart(1);
  const total = (count: number) => [
    `uas_requests_total{route="/v1/messages",status="200"} ${count}`,
  ];
  expect(await lines("uas_requests_total{")).toEqual(total(6));
  expect(await lines("uas_requests_in_flight ")).toEqual(["uas_requests_in_flight 1"]);
  expect(await lines("uas_worker_restarts_total ")).toEqual(["uas_worker_restarts_total 1"]);

  first = createMetrics();
  first.countRequest("/v1/messages", 200);
  await told();
  expect(await lines("uas_requests_total{")).toEqual(total(7));
  restart(1);
  restart(2);
  expect(await lines("uas_requests_total{")).toEqual(total(7));
  expect(await lines("uas_gateway_overhead_seconds_count")).toEqual([
    "uas_gateway_overhead_seconds_count 1",
  ]);
  expect(await lines("uas_worker_restarts_total ")).toEqual(["uas_worker_restarts_total 3"]);
});

it("the start time of the metrics is the supervisor's, not a worker's", async () => {
  await told();
  const [line = ""] = await lines("process_start_time_seconds ");
  const seconds = Number(line.split(" ")[1]);
  expect(Math.abs(seconds - (Date.now() / 1000 - process.uptime()))).toBeLessThan(5);
});

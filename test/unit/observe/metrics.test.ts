/** What the gateway counts comes out as prom-client would write it, though prom-client does not count it. */
import * as prom from "prom-client";
import { beforeEach, describe, expect, it } from "vitest";
import { Counter, createMetrics, Gauge, Histogram } from "../../../src/observe/metrics.ts";

let registry: prom.Registry;
let theirs: prom.Registry;
beforeEach(() => {
  registry = new prom.Registry();
  theirs = new prom.Registry();
});

/** Both texts, without an order of lines, and with the labels of each line in order. */
async function texts(): Promise<[string[], string[]]> {
  const lines = async (each: prom.Registry): Promise<string[]> =>
    (await each.metrics())
      .split("\n")
      .map((line) =>
        line.replace(/\{(.*)\}/, (_, labels: string) => labels.split(",").toSorted().join(",")),
      )
      .toSorted();
  return [await lines(registry), await lines(theirs)];
}

describe("the text of a metric is the same as prom-client's", () => {
  it("a counter with labels prints as prom-client prints it, also with characters that need escaping", async () => {
    const options = { name: "c_total", help: "Some\nhelp." };
    const ours = new Counter({ registry, ...options, labelNames: ["model", "type"] });
    const other = new prom.Counter({
      ...options,
      labelNames: ["model", "type"],
      registers: [theirs],
    });
    for (const counter of [ours, other]) {
      counter.inc({ model: 'a"\\\n', type: "input" }, 3);
      counter.inc({ model: 'a"\\\n', type: "input" });
      counter.inc({ model: "b", type: "output" }, 0.25);
      counter.labels({ model: "b", type: "output" }).inc(1.5);
      counter.labels({ model: "never", type: "counted" });
    }
    const [one, two] = await texts();
    expect(one).toEqual(two);
    expect(one.join("\n")).toContain("1.75");
  });

  it("a counter without labels prints as prom-client prints it, and is 0 before anything has happened", async () => {
    const options = { name: "c_total", help: "Help." };
    const ours = new Counter({ registry, ...options });
    const other = new prom.Counter({ ...options, registers: [theirs] });
    const [before, beforeToo] = await texts();
    expect(before).toContain("c_total 0");
    expect(before).toEqual(beforeToo);
    ours.inc();
    other.inc();
    const [after, afterToo] = await texts();
    expect(after).toContain("c_total 1");
    expect(after).toEqual(afterToo);
  });

  it("gauges that are set, moved and read print as prom-client prints them", async () => {
    const set = { name: "g_set", help: "Help.", labelNames: ["state"] as const };
    const moved = { name: "g_moved", help: "Help." };
    const read = { name: "g_read", help: "Help." };
    const ours = [new Gauge({ registry, ...set }), new Gauge({ registry, ...moved })] as const;
    let value = 1;
    void new Gauge({ registry, ...read, read: () => value });
    const registers = [theirs];
    const others = [
      new prom.Gauge({ ...set, registers }),
      new prom.Gauge({ ...moved, registers }),
    ] as const;
    new prom.Gauge({ ...read, registers }).set(7);
    for (const [one, two] of [ours, others]) {
      one.set({ state: "queued" }, 5);
      one.set({ state: "running" }, 0);
      one.set({ state: "queued" }, 4);
      two.inc();
      two.inc();
      two.dec();
    }
    value = 7;
    const [one, two] = await texts();
    expect(one).toEqual(two);
    expect(one).toContain("g_read 7");
  });

  it("histograms print as prom-client prints them, with values on their bounds, between and above them", async () => {
    const options = { name: "h_seconds", help: "Help.", buckets: [0.0005, 0.01, 1, 10.24] };
    const labelled = { ...options, name: "l_seconds", labelNames: ["model"] as const };
    const ours = [
      new Histogram({ registry, ...options }),
      new Histogram({ registry, ...labelled }),
    ] as const;
    const registers = [theirs];
    const others = [
      new prom.Histogram({ ...options, registers }),
      new prom.Histogram({ ...labelled, registers }),
    ] as const;
    for (const [only, by] of [ours, others]) {
      for (const value of [0, 0.0005, 0.00051, 0.01, 0.5, 1, 10.24, 10.25, 500])
        only.observe(value);
      by.labels({ model: "m" }).observe(0.02);
    }
    const [one, two] = await texts();
    expect(one).toEqual(two);
    expect(one).toContain('h_seconds_bucketle="+Inf" 9');
  });
});

describe("the metrics of a process", () => {
  it("count requests, attempts and calls in the series of their labels, each once", async () => {
    const metrics = createMetrics();
    metrics.requestsInFlight.inc();
    for (const status of [200, 200, 429]) metrics.countRequest("/v1/messages", status);
    metrics.countRequest("/v1/responses", 200);
    metrics.countAttempt("sim", "ok");
    metrics.countAttempt("sim", "failed");
    metrics.countAttempt("sim", "ok");
    for (const ending of ["completed", "client_gone"]) {
      const series = metrics.callSeries("m", "sim", ending);
      series.duration.observe(0.03);
      series.firstByte.observe(0.01);
      series.inputTokens.inc(10);
      series.charged.inc(0.5);
    }
    expect(metrics.callSeries("m", "sim", "completed")).toBe(
      metrics.callSeries("m", "sim", "completed"),
    );
    const lines = (await metrics.registry.metrics()).split("\n");
    expect(lines.filter((line) => line.startsWith("uas_")).toSorted()).toEqual(
      expect.arrayContaining([
        "uas_requests_in_flight 1",
        'uas_requests_total{route="/v1/messages",status="200"} 2',
        'uas_requests_total{route="/v1/messages",status="429"} 1',
        'uas_requests_total{route="/v1/responses",status="200"} 1',
        'uas_upstream_attempts_total{vendor="sim",outcome="ok"} 2',
        'uas_upstream_attempts_total{vendor="sim",outcome="failed"} 1',
        'uas_call_duration_seconds_count{model="m",vendor="sim",ending="completed"} 1',
        'uas_first_byte_seconds_count{model="m",vendor="sim"} 2',
        'uas_tokens_total{model="m",type="input"} 20',
        'uas_billing_charged_usd_total{model="m"} 1',
      ]),
    );
    expect(lines.some((line) => line.startsWith("uas_billing_vendor_cost_usd_total{"))).toBe(false);
    expect(lines.some((line) => line.startsWith("process_cpu_seconds_total "))).toBe(true);
  });
});

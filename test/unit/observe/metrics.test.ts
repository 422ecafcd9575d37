/** The metrics of a process, as they are scraped. */
import { describe, expect, it } from "vitest";
import { createMetrics } from "../../../src/observe/metrics.ts";

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
      metrics.callDuration.observe({ model: "m", vendor: "sim", ending }, 0.03);
      metrics.firstByte.observe({ model: "m", vendor: "sim" }, 0.01);
      metrics.tokens.inc({ model: "m", type: "input" }, 10);
      metrics.charged.inc({ model: "m" }, 0.5);
    }
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

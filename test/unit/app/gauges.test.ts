/** The gauges of readiness and of the disk. */
import { expect, test } from "vitest";
import { watchDisk, watchReadiness } from "../../../src/app/gauges.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";

test("a gateway that is not ready shows it at the next scrape, without a delay of this one", async () => {
  const metrics = createMetrics();
  let reason: string | undefined = "the database does not answer";
  watchReadiness(metrics, () => Promise.resolve(reason));
  const scrape = () => metrics.registry.getSingleMetricAsString("uas_unready");
  expect(await scrape()).toContain("uas_unready 0");
  expect(await scrape()).toContain("uas_unready 1");
  reason = undefined;
  await scrape();
  expect(await scrape()).toContain("uas_unready 0");
});

test("the disk of the data folder is measured", async () => {
  const metrics = createMetrics();
  watchDisk(metrics, import.meta.dirname);
  const value = async (name: string): Promise<number> => {
    const metric = await metrics.registry.getSingleMetric(name)?.get();
    return metric?.values[0]?.value ?? 0;
  };
  expect(await value("uas_data_free_bytes")).toBeGreaterThan(1e6);
  expect(await value("uas_data_size_bytes")).toBeGreaterThan(await value("uas_data_free_bytes"));
});

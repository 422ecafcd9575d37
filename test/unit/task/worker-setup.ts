/** Workers of the tests, and scripted vendors. Needs no test runner. */
import type { Pool } from "pg";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig, PriceConfig } from "../../../src/config/config.ts";
import { HttpFailure } from "../../../src/http/failure.ts";
import type { WorkerOptions, WorkerVendor } from "../../../src/task/work/worker-options.ts";
import type { TaskUpdate, VendorTasks } from "../../../src/provider/task.ts";

/** Price of an image, and hold of each task of the tests. */
export const imageNanos = 100n;

/** The price of a picture. */
export const price: PriceConfig = {
  input: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: undefined,
  image: imageNanos,
  second: undefined,
  request: undefined,
};

/** A model whose routes go to these vendors, in this order. */
export function model(key: string, vendors: readonly string[]): ModelConfig {
  return {
    key,
    name: key,
    type: ModelType.IMAGE,
    routes: vendors.map((name) => ({ vendor: name, model: `${key}@${name}` })),
    maxOutputTokens: 0,
    holdOutputTokens: 0,
    prices: [{ fromMs: -Infinity, price }],
  };
}

/** Files that are not kept: their address says what they were. */
export const results: WorkerOptions["results"] = {
  store: (source, { contentType = "", taskId }) =>
    Promise.resolve({
      token: "t",
      url: `https://files.test/${taskId}/${"url" in source ? encodeURIComponent(source.url) : Buffer.from(source.bytes).toString()}`,
      contentType,
      bytes: 3,
      sha256: "00".repeat(32),
      expireTime: new Date("2030-01-01T00:00:00Z"),
    }),
};

/** Options of a test's worker; the rest has defaults below. */
export type TestWorkerOptions = Partial<WorkerOptions> & Pick<WorkerOptions, "vendors" | "config">;

/** The options of a worker with short times. */
export function workerOptions(pool: Pool, options: TestWorkerOptions): WorkerOptions {
  return {
    pool,
    results,
    findPrice: () => Promise.resolve(price),
    random: () => 0.5,
    warn: (message, { err }) => {
      if (err instanceof Error && !(err instanceof HttpFailure))
        process.stderr.write(`${message}: ${err.stack ?? ""}\n`);
    },
    ...options,
    timings: { scanMs: 20, pollMs: 5, pollMsMax: 20, settleMs: 0, ...options.timings },
  };
}

/**
 * A vendor of the tests: what is not said is that it takes each task and is done at the first look.
 */
export function vendor(
  parts: Partial<VendorTasks> = {},
  maxInFlight?: number,
): WorkerVendor & { readonly asked: string[] } {
  const asked: string[] = [];
  const { submit: given, ...rest } = parts;
  const tasks: VendorTasks = {
    resubmit: "blind",
    types: new Set([ModelType.IMAGE]),
    canCancel: parts.cancel !== undefined,
    submit(submission) {
      asked.push(submission.attemptToken);
      return given?.(submission) ?? Promise.resolve({ vendorTaskId: submission.attemptToken });
    },
    poll: () => Promise.resolve(completed),
    units: (params) => ({ images: Number(params["images"]) }),
    ...rest,
  };
  return { tasks, maxInFlight, baseUrl: "", asked };
}

/** News of a picture. */
export const completed: TaskUpdate = {
  status: "completed",
  outcome: { files: [{ url: "https://vendor.test/a.png", contentType: "image/png" }] },
};

/** One model and its vendors. */
export function one(
  vendors: Readonly<Record<string, WorkerVendor>>,
): Pick<WorkerOptions, "vendors" | "config"> {
  return {
    vendors: new Map(Object.entries(vendors)),
    config: { models: new Map([["m", model("m", Object.keys(vendors))]]) },
  };
}

/** Predictions specific to Replicate. */
import type { JsonObject } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "vitest";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { TaskUpdate, VendorTasks } from "../../../../src/provider/task.ts";
import type { Vendor } from "../../../../src/provider/vendor.ts";
import { madeVendor, modelOf, submission, tasksOf } from "./adapters.ts";
import { prediction, replicateSecret, startReplicate } from "./replicate-vendor.ts";
import type { SimulatedVendor } from "./simulated.ts";

const signal = new AbortController().signal;
const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function started(): Promise<{ sim: SimulatedVendor; tasks: VendorTasks; vendor: Vendor }> {
  const sim = await startReplicate();
  const vendor = madeVendor("replicate", sim.origin, replicateSecret);
  open.push(vendor, sim);
  return { sim, vendor, tasks: tasksOf(vendor) };
}

describe("replicate", () => {
  const flux = {
    type: ModelType.IMAGE,
    model: "black-forest-labs/flux-schnell",
    least: { prompt: "A lighthouse" },
  };

  it("reports progress by its log, then the addresses of the files", async () => {
    const { tasks } = await started();
    const submitted = await tasks.submit(submission(flux));
    expect(submitted).toEqual({ vendorTaskId: "p1rm0czn" });
    expect(await tasks.poll?.("p1rm0czn", signal)).toEqual({ status: "running", progress: 40 });
    expect(await tasks.poll?.("p1rm0czn", signal)).toEqual({
      status: "completed",
      outcome: {
        files: [
          { url: "https://replicate.delivery/a/out-0.webp", contentType: "image/webp" },
          { url: "https://replicate.delivery/out-1.mp4", contentType: "video/mp4" },
        ],
      },
    });
  });

  it("runs a named version, and asks for news where it may", async () => {
    const { tasks, sim } = await started();
    const callbackUrl = "https://gateway.example/callback";
    const versioned = { ...flux, model: "black-forest-labs/flux-schnell:5c7d5dc6" };
    await tasks.submit(submission(versioned, { callbackUrl }));
    expect(sim.arrived[0]).toMatchObject({
      url: "/v1/predictions",
      json: { version: "5c7d5dc6", webhook: callbackUrl, webhook_events_filter: ["completed"] },
    });
    const gone = tasks.submit(submission({ ...flux, model: "a/b:none" }));
    await expect(gone).rejects.toMatchObject({ fault: "model", isTemporary: true });
  });

  it("R-TSK-7: says which of its predictions were submitted with a token", async () => {
    const { tasks, sim } = await started();
    const token = "0199a0b0-1111-7222-8333-444455556666";
    const webhook = `https://gateway.example/callbacks/${token}`;
    const { taskIdIn, isOurs } = tasks.callbacks ?? {};
    const body = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
    expect(taskIdIn?.(body({ id: "p1rm0czn", status: "succeeded" }))).toBe("p1rm0czn");
    for (const other of [
      body({}),
      body({ id: "../x" }),
      body([]),
      Buffer.from("{"),
      body({ id: 1 }),
    ])
      expect(taskIdIn?.(other)).toBeUndefined();
    const answers = [];
    for (const changes of [{ webhook }, { webhook: `${webhook}1` }, {}, { webhook: 5 }]) {
      sim.next(prediction("p1", { status: "processing", ...changes }));
      answers.push(await isOurs?.("p1", token, signal));
    }
    expect(answers).toEqual([true, false, false, false]);
    expect(await isOurs?.("nobody", token, signal)).toBe(false);
    sim.next({ status: 500, body: {} });
    await expect(isOurs?.("p1", token, signal)).rejects.toMatchObject({ status: 500 });
  });

  const rejected = "The input or output was flagged as sensitive. (E005)";
  const none = { code: "upstream_error", message: expect.stringContaining("no result file") };

  it.each([
    [{ status: "starting" }, { status: "running" }],
    [{ status: "canceled" }, { status: "cancelled" }],
    [{ status: "canceled", metrics: { predict_time: 0 } }, { status: "cancelled" }],
    [
      { status: "canceled", metrics: { predict_time: 1.5 } },
      { status: "cancelled", reportedCost: { units: { images: 0, seconds: 0 } } },
    ],
    [
      {
        status: "canceled",
        output: ["https://replicate.delivery/a.png", "https://replicate.delivery/b.png"],
        metrics: { predict_time: 1.5, input_token_count: 4, output_token_count: 7 },
      },
      {
        status: "cancelled",
        reportedCost: {
          units: { images: 2, seconds: 0 },
          usage: { inputTokens: 4, outputTokens: 7 },
        },
      },
    ],
    [
      { status: "canceled", metrics: { predict_time: 3, video_output_duration_seconds: 2.5 } },
      { status: "cancelled", reportedCost: { units: { images: 0, seconds: 2.5 } } },
    ],
    // It never ran, whatever it says.
    [{ status: "aborted" }, { status: "cancelled" }],
    [
      { status: "failed", error: rejected },
      { status: "failed", error: { code: "content_rejected", message: expect.any(String) } },
    ],
    [
      { status: "failed", error: "CUDA out of memory" },
      {
        status: "failed",
        error: { code: "upstream_error", message: expect.stringMatching(/CUDA/) },
      },
    ],
    [
      { status: "succeeded", output: null },
      { status: "failed", error: none },
    ],
    [
      { status: "succeeded", output: "only text" },
      { status: "failed", error: none },
    ],
    [
      { status: "succeeded", output: { video: "https://replicate.delivery/a.mp4?x=1" } },
      {
        status: "completed",
        outcome: {
          files: [{ url: "https://replicate.delivery/a.mp4?x=1", contentType: "video/mp4" }],
        },
      },
    ],
    [
      { status: "succeeded", output: "data:audio/wav;base64,aGk=" },
      {
        status: "completed",
        outcome: { files: [{ bytes: Buffer.from("hi"), contentType: "audio/wav" }] },
      },
    ],
    [
      {
        status: "succeeded",
        output: ["https://replicate.delivery/a.mp4"],
        metrics: { video_output_duration_seconds: 5 },
      },
      {
        status: "completed",
        outcome: {
          files: [{ url: "https://replicate.delivery/a.mp4", contentType: "video/mp4" }],
          units: { seconds: 5 },
        },
      },
    ],
  ] as [JsonObject, TaskUpdate][])("R-TSK-1: a prediction is read: %j", async (changes, news) => {
    const { tasks, sim } = await started();
    sim.next(prediction("p1", changes));
    expect(await tasks.poll?.("p1", signal)).toEqual(news);
  });

  it("an unknown status changes nothing", async () => {
    const { tasks, sim } = await started();
    sim.next(prediction("p1", { status: "thinking" }));
    await expect(tasks.poll?.("p1", signal)).rejects.toThrow(/unknown status thinking/);
  });

  it("R-TSK-5: is cancelled, or it is too late", async () => {
    const { tasks, sim } = await started();
    await tasks.submit(submission(flux));
    expect(await tasks.cancel?.("p1rm0czn", signal)).toBe("cancelled");
    expect(sim.arrived.at(-1)).toMatchObject({ method: "POST", json: undefined });
    expect(await tasks.poll?.("p1rm0czn", signal)).toEqual({ status: "cancelled" });
    expect(await tasks.cancel?.("nobody", signal)).toBe("too_late");
    const answers = [];
    for (const status of ["processing", "succeeded", "failed", "aborted"]) {
      sim.next(prediction("p1", { status }));
      answers.push(await tasks.cancel?.("p1", signal));
    }
    expect(answers).toEqual(["requested", "too_late", "too_late", "cancelled"]);
    sim.next({ status: 500, body: {} });
    await expect(tasks.cancel?.("p1", signal)).rejects.toMatchObject({ status: 500 });
  });

  it("R-TSK-6: the duration is required where a second has a price", async () => {
    const { tasks } = await started();
    const route = { vendor: "acme", model: "m" };
    const requiredBy = (second?: bigint): unknown =>
      tasks.paramsSchema?.(modelOf(ModelType.VIDEO, second === undefined ? {} : { second }), route)[
        "required"
      ];
    expect(requiredBy()).toEqual(["prompt"]);
    expect(requiredBy(400_000_000n)).toEqual(["prompt", "duration"]);
  });

  it("replicate generates no text", async () => {
    const { vendor } = await started();
    expect(vendor.dialects.size).toBe(0);
  });
});

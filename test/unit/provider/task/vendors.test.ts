/** Tasks specific to OpenAI and Gemini. */
import type { JsonObject } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "vitest";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorTasks } from "../../../../src/provider/task.ts";
import { madeVendor, modelOf, submission, tasksOf } from "./adapters.ts";
import { ended, filmed, geminiSecret, startGemini } from "./gemini-vendor.ts";
import { openaiPicture, openaiSecret, startOpenai } from "./openai-vendor.ts";
import type { SimulatedVendor } from "./simulated.ts";

const signal = new AbortController().signal;
const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function started(
  kind: string,
  start: () => Promise<SimulatedVendor>,
  { secret, basePath = "" }: { secret: string; basePath?: string },
): Promise<{ sim: SimulatedVendor; tasks: VendorTasks }> {
  const sim = await start();
  const vendor = madeVendor(kind, sim.origin + basePath, secret);
  open.push(vendor, sim);
  return { sim, tasks: tasksOf(vendor) };
}

describe("openai", () => {
  const at = { secret: openaiSecret, basePath: "/v1" };
  const draw = { type: ModelType.IMAGE, model: "gpt-image-2", least: { prompt: "A lighthouse" } };
  const speak = {
    type: ModelType.AUDIO,
    model: "gpt-4o-mini-tts",
    least: { text: "Good morning." },
  };

  it("a picture comes as bytes, with its tokens; OpenAI can find the request", async () => {
    const { tasks, sim } = await started("openai", startOpenai, at);
    const params = { prompt: "A lighthouse", n: 2, size: "1024*1536", outputFormat: "webp" };
    const task = submission(draw, { params });
    expect(await tasks.submit(task)).toEqual({
      done: {
        files: Array(2).fill({ bytes: openaiPicture, contentType: "image/webp" }),
        units: { images: 2 },
        usage: { inputTokens: 12, outputTokens: 1_056 },
      },
    });
    const [request] = sim.arrived;
    expect(request?.headers["x-client-request-id"]).toBe(task.attemptToken);
    expect(request?.json).toEqual({
      model: "gpt-image-2",
      prompt: "A lighthouse",
      n: 2,
      size: "1024x1536",
      output_format: "webp",
    });
  });

  it("a picture may come as an address, too", async () => {
    const { tasks, sim } = await started("openai-compatible", startOpenai, at);
    const url = "https://files.example/a.png";
    sim.next({ status: 200, body: { data: [{ url, revised_prompt: "x" }] } });
    expect(await tasks.submit(submission(draw))).toEqual({
      done: { files: [{ url, contentType: "image/png" }], units: { images: 1 } },
    });
  });

  it("R-MON-1: speech is charged by the seconds that it has, never by more than was held", async () => {
    const { tasks, sim } = await started("openai", startOpenai, at);
    const params = { text: "Good morning.", format: "pcm" };
    const spoken = await tasks.submit(submission(speak, { params }));
    expect(spoken).toMatchObject({
      done: { files: [{ contentType: "audio/L16;rate=24000;channels=1" }], units: { seconds: 3 } },
    });
    sim.next({ status: 200, type: "audio/pcm", body: Buffer.alloc(48_000 * 60) });
    const { seconds } = tasks.units(params, modelOf(ModelType.AUDIO));
    expect(await tasks.submit(submission(speak, { params }))).toMatchObject({
      done: { units: { seconds } },
    });
  });

  it("R-MON-1: speech that cannot be measured is charged as it usually is", async () => {
    const { tasks, sim } = await started("openai", startOpenai, at);
    sim.next({ status: 200, type: "audio/mpeg", body: Buffer.from("no frame") });
    expect(await tasks.submit(submission(speak))).toMatchObject({
      done: { units: { seconds: 2 } },
    });
  });
});

describe("gemini", () => {
  const at = { secret: geminiSecret };
  const veo = { type: ModelType.VIDEO, model: "veo-3.1", least: { prompt: "Waves" } };
  const draw = { type: ModelType.IMAGE, model: "gemini-2.5-flash-image", least: { prompt: "A" } };
  const name = "models/veo-3.1/operations/op1";

  it("a picture is what the model drew in the end, with its thoughts counted", async () => {
    const { tasks } = await started("gemini", startGemini, at);
    expect(await tasks.submit(submission(draw))).toEqual({
      done: {
        files: [{ bytes: Buffer.from("picture"), contentType: "image/png" }],
        units: { images: 1 },
        usage: { inputTokens: 9, outputTokens: 1_300 },
      },
    });
  });

  it.each([
    [{ promptFeedback: { blockReason: "OTHER" } }, "content_rejected"],
    [{ candidates: [{ finishReason: "PROHIBITED_CONTENT" }] }, "content_rejected"],
    [{ candidates: [{ finishReason: "IMAGE_RECITATION" }] }, "content_rejected"],
    [{ candidates: [{ finishReason: "NO_IMAGE" }] }, "upstream_error"],
    [{ candidates: [{ content: { parts: [{ text: "No." }] } }] }, "upstream_error"],
    [{}, "upstream_error"],
  ])("R-TSK-10: a reply without a picture fails the submit: %j", async (body, code) => {
    const { tasks, sim } = await started("gemini", startGemini, at);
    sim.next({ status: 200, body: body as JsonObject });
    await expect(tasks.submit(submission(draw))).rejects.toMatchObject({
      code,
      isTemporary: false,
    });
  });

  it("a film's file is fetched with the key at the vendor's own place, and nowhere else", async () => {
    const { tasks, sim } = await started("gemini", startGemini, at);
    expect(await tasks.submit(submission(veo))).toEqual({ vendorTaskId: name });
    expect(sim.arrived[0]?.json).toMatchObject({ parameters: { durationSeconds: 8 } });
    expect(tasks.units(veo.least, modelOf(ModelType.VIDEO))).toEqual({ seconds: 8 });
    sim.next(filmed(sim.origin));
    const news = await tasks.poll?.(name, signal);
    expect(news).toMatchObject({
      status: "completed",
      outcome: {
        files: [
          {
            headers: { "x-goog-api-key": geminiSecret },
            redirectHosts: [".googleapis.com", ".googleusercontent.com"],
            contentType: "video/mp4",
          },
          { url: "https://storage.example/film.mp4", headers: {} },
        ],
      },
    });
  });

  const filtered = {
    response: {
      generateVideoResponse: {
        raiMediaFilteredCount: 1,
        raiMediaFilteredReasons: ["We could not make it."],
      },
    },
  };

  it.each([
    [filtered, "content_rejected", /We could not make it/],
    [{ response: {} }, "upstream_error", /failed/],
    [{ error: { code: 3, message: "Bad duration" } }, "invalid_parameters", /Bad duration/],
    [
      { error: { code: 3, message: "It violates our usage guidelines" } },
      "content_rejected",
      /usage guidelines/,
    ],
    [{ error: { code: 13, message: "Internal: host-7" } }, "upstream_error", /^((?!host-7).)*$/],
  ])(
    "R-TSK-10: an operation that ended without a video fails the task: %j",
    async (how, code, message) => {
      const { tasks, sim } = await started("gemini", startGemini, at);
      sim.next(ended(how));
      expect(await tasks.poll?.(name, signal)).toEqual({
        status: "failed",
        error: { code, message: expect.stringMatching(message) },
      });
    },
  );

  it("R-TSK-1: an operation that was cancelled there is cancelled", async () => {
    const { tasks, sim } = await started("gemini", startGemini, at);
    sim.next(ended({ error: { code: 1, message: "cancelled" } }));
    expect(await tasks.poll?.(name, signal)).toEqual({ status: "cancelled" });
  });

  it.each(["../v1/keys", "operations/../keys", "https://evil.example/x", "", 7])(
    "an operation's name that is none is never asked for: %j",
    async (wrong) => {
      const { tasks, sim } = await started("gemini", startGemini, at);
      sim.next({ status: 200, body: { name: wrong } });
      await expect(tasks.submit(submission(veo))).rejects.toThrow(/without the name/);
    },
  );
});

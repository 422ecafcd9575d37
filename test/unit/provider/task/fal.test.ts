/** Jobs specific to fal. */
import { afterEach, describe, expect, it } from "vitest";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { TaskUpdate, VendorTasks } from "../../../../src/provider/task.ts";
import { madeVendor, modelOf, submission, tasksOf } from "./adapters.ts";
import { falSays, falSecret, startFal } from "./fal-vendor.ts";
import type { SimulatedVendor, TaskAnswer } from "./simulated.ts";

const signal = new AbortController().signal;
const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function started(): Promise<{ sim: SimulatedVendor; tasks: VendorTasks }> {
  const sim = await startFal();
  const vendor = madeVendor("fal", sim.origin, falSecret);
  open.push(vendor, sim);
  return { sim, tasks: tasksOf(vendor) };
}

describe("fal", () => {
  const flux = {
    type: ModelType.IMAGE,
    model: "fal-ai/flux/dev",
    least: { prompt: "A lighthouse" },
  };
  const kling = {
    type: ModelType.VIDEO,
    model: "fal-ai/kling-video/v2/master/text-to-video",
    least: { prompt: "Waves", duration: 5 },
  };
  const id = "fal-ai/flux/requests/764cabcf-b745-4b3e-ae38-1";

  it("follows a job at the addresses of its app, and is charged by what fal bills", async () => {
    const { tasks, sim } = await started();
    const params = { prompt: "A lighthouse", n: 2, size: "2000x1000" };
    expect(await tasks.submit(submission(flux, { params }))).toEqual({ vendorTaskId: id });
    expect(sim.arrived[0]?.json).toEqual({
      prompt: "A lighthouse",
      num_images: 2,
      image_size: { width: 2_000, height: 1_000 },
    });
    expect(tasks.units(params, modelOf(ModelType.IMAGE))).toEqual({ images: 4 });
    expect(await tasks.poll?.(id, signal)).toEqual({ status: "running" });
    const file = { url: "https://v3.fal.media/files/a/1.png", contentType: "image/png" };
    expect(await tasks.poll?.(id, signal)).toEqual({
      status: "completed",
      outcome: { files: [file, file], units: { images: 4 } },
    });
    // A running job costs one look, an ended one its result as well.
    expect(sim.arrived.map(({ method, url }) => `${method} ${url}`)).toEqual([
      "POST /fal-ai/flux/dev",
      `GET /${id}/status`,
      `GET /${id}/status`,
      `GET /${id}`,
    ]);
  });

  it.each([
    ["fal-ai/kling-video/v2/master/text-to-video", 10, "10"],
    ["fal-ai/veo3", 8, "8s"],
    ["fal-ai/sora-2/text-to-video", 8, 8],
  ])("gets %s how long in the form that it takes", async (model, duration, said) => {
    const { tasks, sim } = await started();
    sim.next({ status: 200, body: { request_id: "1" } });
    await tasks.submit(submission({ ...kling, model }, { params: { prompt: "Waves", duration } }));
    expect(sim.arrived[0]?.json).toEqual({ prompt: "Waves", duration: said });
  });

  it("R-MON-1: a video is charged by its seconds, and by the requested ones if it reports none", async () => {
    const { tasks } = await started();
    const submitted = await tasks.submit(submission(kling));
    const filmId = "vendorTaskId" in submitted ? (submitted.vendorTaskId ?? "") : "";
    await tasks.poll?.(filmId, signal);
    const film = { url: "https://v3.fal.media/files/a/1.mp4", contentType: "video/mp4" };
    expect(await tasks.poll?.(filmId, signal)).toEqual({
      status: "completed",
      outcome: { files: [film], units: { seconds: 5 } },
    });
    const speech = { type: ModelType.AUDIO, model: "fal-ai/minimax/speech-02", least: {} };
    const spoken = await tasks.submit(submission(speech, { params: { text: "Hello." } }));
    const soundId = "vendorTaskId" in spoken ? (spoken.vendorTaskId ?? "") : "";
    await tasks.poll?.(soundId, signal);
    const sound = { url: "https://v3.fal.media/files/a/1.mp3", contentType: "audio/mpeg" };
    expect(await tasks.poll?.(soundId, signal)).toEqual({
      status: "completed",
      outcome: { files: [sound] },
    });
  });

  const failed = (code: string, message: RegExp): TaskUpdate =>
    ({ status: "failed", error: { code, message: expect.stringMatching(message) } }) as TaskUpdate;

  it.each([
    [falSays(422, "flagged", "content_policy_violation"), failed("content_rejected", /flagged/)],
    [falSays(422, "Bad seed", "value_error"), failed("invalid_parameters", /Bad seed/)],
    [falSays(500, "host-7 died"), failed("upstream_error", /^((?!host-7).)*$/)],
    [falSays(400, "Request was cancelled"), { status: "cancelled" }],
    [{ status: 200, body: { text: "only text" } }, failed("upstream_error", /no result file/)],
    [
      { status: 200, body: { image: { url: "data:image/png;base64,aGk=" } } },
      {
        status: "completed",
        outcome: { files: [{ bytes: Buffer.from("hi"), contentType: "image/png" }] },
      },
    ],
  ] as [TaskAnswer, TaskUpdate][])("R-TSK-10: a job whose result is %j", async (result, news) => {
    const { tasks, sim } = await started();
    sim.next({ status: 200, body: { status: "COMPLETED" } });
    sim.next(result);
    expect(await tasks.poll?.(id, signal)).toEqual(news);
  });

  it.each([401, 403, 429, 502, 503])(
    "R-TSK-1: a result that cannot be had now says nothing: %i",
    async (status) => {
      const { tasks, sim } = await started();
      sim.next({ status: 200, body: { status: "COMPLETED" } });
      sim.next(falSays(status, "not now"));
      await expect(tasks.poll?.(id, signal)).rejects.toMatchObject({
        name: "VendorReplyError",
        status,
      });
    },
  );

  it("R-TSK-5: receives a cancel, and is cancelled once fal confirms it; or it is too late", async () => {
    const { tasks, sim } = await started();
    await tasks.submit(submission(flux));
    expect(await tasks.cancel?.(id, signal)).toBe("requested");
    expect(sim.arrived.at(-1)).toMatchObject({ method: "PUT", url: `/${id}/cancel` });
    expect(sim.arrived.at(-1)?.json).toBeUndefined();
    expect(await tasks.poll?.(id, signal)).toEqual({ status: "cancelled" });
    await tasks.poll?.(id, signal);
    expect(await tasks.cancel?.(id, signal)).toBe("too_late");
    expect(await tasks.cancel?.("fal-ai/flux/requests/none", signal)).toBe("too_late");
    sim.next({ status: 500, body: {} });
    await expect(tasks.cancel?.(id, signal)).rejects.toMatchObject({ status: 500 });
  });

  it("R-MON-1: the units that fal counts are of the requested type, also for a job that it stopped", async () => {
    const { tasks, sim } = await started();
    const headers = { "x-fal-billable-units": "1.50" };
    const nameless = { image: { url: "https://v3.fal.media/files/a/1" } };
    const stopped = { ...falSays(400, "Request was cancelled"), headers };
    const news: unknown[] = [];
    for (const type of [ModelType.IMAGE, ModelType.VIDEO]) {
      for (const result of [{ status: 200, headers, body: nameless }, stopped]) {
        sim.next({ status: 200, body: { status: "COMPLETED" } });
        sim.next(result);
        news.push(await tasks.poll?.(id, signal, type));
      }
    }
    expect(news).toMatchObject([
      { outcome: { units: { images: 2 } } },
      { status: "cancelled", reportedCost: { units: { images: 2 } } },
      { outcome: { units: { seconds: 1.5 } } },
      { status: "cancelled", reportedCost: { units: { seconds: 1.5 } } },
    ]);
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

  it.each(["../x", "", 7, "a/b"])("an id that is none is never asked for: %j", async (wrong) => {
    const { tasks, sim } = await started();
    sim.next({ status: 200, body: { request_id: wrong } });
    await expect(tasks.submit(submission(flux))).rejects.toThrow(/without its id/);
  });
});

/** The demo vendor's tasks: files that programs can read, the same from the same prompt. */
import { crc32, inflateSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { createDemoTasks } from "../../../../src/provider/demo/tasks.ts";
import { audioSeconds } from "../../../../src/provider/media/length.ts";
import {
  type OpenTasks,
  type TaskOutcome,
  TaskRefused,
  type TaskSubmission,
  VendorReplyError,
} from "../../../../src/provider/task.ts";
import { modelOf, submission } from "./adapters.ts";

const signal = new AbortController().signal;
const image = { type: ModelType.IMAGE, model: "image", least: { prompt: "A lighthouse" } };
const audio = { type: ModelType.AUDIO, model: "audio", least: { text: "Good morning." } };

let tasks: OpenTasks;

beforeEach(() => {
  vi.useFakeTimers();
  tasks = createDemoTasks();
});
afterEach(async () => {
  await tasks.close();
  vi.useRealTimers();
});

async function idOf(task: TaskSubmission): Promise<string> {
  const submitted = await tasks.submit(task);
  return "vendorTaskId" in submitted ? (submitted.vendorTaskId ?? "") : "";
}

async function made(task: TaskSubmission): Promise<TaskOutcome> {
  const id = await idOf(task);
  await vi.advanceTimersByTimeAsync(1_000);
  const news = await tasks.poll?.(id, signal);
  if (news?.status !== "completed") throw new Error(`it is ${news?.status}`);
  return news.outcome;
}

function bytesOf({ files }: TaskOutcome, index = 0): Buffer {
  return files[index]?.bytes ?? Buffer.alloc(0);
}

/** The chunks of a PNG file, each with a right sum. */
function chunksOf(file: Buffer): ReadonlyMap<string, Buffer> {
  expect(file.subarray(0, 8).toString("latin1")).toBe("\x89PNG\r\n\x1a\n");
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at);
    const typed = file.subarray(at + 4, at + 8 + length);
    expect(file.readUInt32BE(at + 8 + length)).toBe(crc32(typed));
    chunks.set(typed.toString("latin1", 0, 4), typed.subarray(4));
    at += length + 12;
  }
  expect([...chunks.keys()]).toEqual(["IHDR", "tEXt", "IDAT", "IEND"]);
  return chunks;
}

describe("pictures", () => {
  it.each([
    [256, 1],
    [512, 2],
    [1024, 4],
  ])(
    "pictures of %i pixels, %i of them, are whole PNG files that say what they are",
    async (side, n) => {
      const params = { prompt: "A lighthouse", size: `${side}x${side}`, n };
      const outcome = await made(submission(image, { params }));
      expect(outcome.units).toEqual({ images: n });
      expect(outcome.files).toHaveLength(n);
      for (const { bytes, contentType } of outcome.files) {
        expect(contentType).toBe("image/png");
        const chunks = chunksOf(bytes ?? Buffer.alloc(0));
        expect(chunks.get("IHDR")?.readUInt32BE(0)).toBe(side);
        expect(chunks.get("IHDR")?.readUInt32BE(4)).toBe(side);
        expect(chunks.get("tEXt")?.toString()).toContain("Not an AI");
        const rows = inflateSync(chunks.get("IDAT") ?? Buffer.alloc(0));
        expect(rows).toHaveLength(side * (3 * side + 1));
      }
    },
  );

  it("pictures are the same from the same prompt and seed, and others from others", async () => {
    const draw = async (params: TaskSubmission["params"]): Promise<Buffer> =>
      bytesOf(await made(submission(image, { params })));
    const first = await draw({ prompt: "A lighthouse" });
    expect(await draw({ prompt: "A lighthouse" })).toEqual(first);
    expect(await draw({ prompt: "A boat" })).not.toEqual(first);
    expect(await draw({ prompt: "A lighthouse", seed: 2 })).not.toEqual(first);
    const two = await made(submission(image, { params: { prompt: "A lighthouse", n: 2 } }));
    expect(bytesOf(two)).toEqual(first);
    expect(bytesOf(two, 1)).not.toEqual(first);
  });
});

it("audio is a WAV file of the requested seconds, which are charged", async () => {
  const params = { text: "Good morning.", duration: 3 };
  const outcome = await made(submission(audio, { params }));
  expect(outcome.units).toEqual({ seconds: 3 });
  expect(tasks.units(params, modelOf(ModelType.AUDIO))).toEqual({ seconds: 3 });
  expect(outcome.files).toMatchObject([{ contentType: "audio/wav" }]);
  const file = bytesOf(outcome);
  expect(file.readUInt32LE(4)).toBe(file.length - 8);
  expect(audioSeconds(file, "wav")).toBe(3);
  expect(bytesOf(await made(submission(audio, { params })))).toEqual(file);
});

it("a demo task reports its progress, and that there is an update", async () => {
  const onUpdate = vi.fn();
  const id = await idOf(submission(image, { onUpdate }));
  expect(await tasks.poll?.(id, signal)).toEqual({ status: "running", progress: 0 });
  await vi.advanceTimersByTimeAsync(150);
  expect(await tasks.poll?.(id, signal)).toEqual({ status: "running", progress: 50 });
  expect(onUpdate).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(150);
  expect(onUpdate).toHaveBeenCalledOnce();
  expect(await tasks.poll?.(id, signal)).toMatchObject({ status: "completed" });
});

it("R-TSK-7: a demo submission is idempotent: the same attempt is the same task, also where another process asks", async () => {
  expect(tasks.resubmit).toBe("idempotent");
  const task = submission(image);
  const id = await idOf(task);
  await vi.advanceTimersByTimeAsync(150);
  expect(await idOf(task)).toBe(id);
  expect(await tasks.poll?.(id, signal)).toEqual({ status: "running", progress: 50 });
  expect(await idOf({ ...task, attemptToken: "0199a0b0-0000-7000-8000-000000000000" })).not.toBe(
    id,
  );
  const other = createDemoTasks();
  const resubmitted = await other.submit(task);
  expect(resubmitted).toEqual({ vendorTaskId: id });
  await other.close();
  expect(await createDemoTasks().poll?.(id, signal)).toMatchObject({ status: "completed" });
});

it("a demo task is cancelled while it runs, and not afterwards", async () => {
  const id = await idOf(submission({ ...image, model: "slow" }));
  expect(await tasks.cancel?.(id, signal)).toBe("cancelled");
  expect(await tasks.poll?.(id, signal)).toEqual({ status: "cancelled" });
  const done = await idOf(submission(audio));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await tasks.cancel?.(done, signal)).toBe("too_late");
});

it("the demo vendor refuses the kinds of task that it does not have", async () => {
  const unknown = tasks.submit(submission({ ...image, model: "chat" }));
  await expect(unknown).rejects.toThrow(TaskRefused);
  await expect(tasks.poll?.("demo-image-1-9-1", signal)).rejects.toThrow(VendorReplyError);
});

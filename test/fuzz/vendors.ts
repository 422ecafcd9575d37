/** Simulated vendors of every kind, for a gateway that runs as a process of its own. */
import { setTimeout as sleep } from "node:timers/promises";
import { Dashscope } from "../native/dashscope-vendor.ts";
import { Fal, falResult } from "../native/fal-vendor.ts";
import { playGemini } from "../native/gemini-vendor.ts";
import {
  type AskedVendor,
  type NativeVendorServer,
  startNativeVendor,
  type VendorAnswer,
} from "../native/native-vendor.ts";
import { playReplicate } from "../native/replicate-vendor.ts";
import { type PlainVendor, startPlainVendor } from "../support/plain-vendor.ts";
import { strictChat } from "../support/upstream/chat-strict.ts";
import { strictGemini } from "../support/upstream/gemini-strict.ts";
import { strictMessages } from "../support/upstream/messages-strict.ts";
import { strictResponses } from "../support/upstream/responses-strict.ts";
import { startUpstream, type Upstream } from "../support/upstream/upstream.ts";

/** The styles that text vendors speak. */
export const textVendors = ["chat", "responses", "messages", "gemini"] as const;

/** A style of a text vendor. */
export type TextVendor = (typeof textVendors)[number];

/** Running vendors. */
export interface Vendors {
  readonly text: Readonly<Record<TextVendor, Upstream>>;
  /** Embeddings, images and audio in OpenAI's form. */
  readonly media: PlainVendor;
  readonly native: Readonly<Record<NativeName, NativeVendorServer>>;
  /** Forgets what was asked, so that long runs keep no requests. */
  clear(): void;
  close(): Promise<void>;
}

/** The vendors with a native API. */
export type NativeName = "gemini" | "replicate" | "dashscope" | "fal";

const mediaReplies: readonly [RegExp, string | Buffer, string?][] = [
  [
    /embeddings/,
    '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25]}],"model":"v","usage":{"prompt_tokens":12,"total_tokens":12}}',
  ],
  [/images/, '{"created":1790000000,"data":[{"b64_json":"iVBORw0KGgo="}]}'],
  [/speech/, Buffer.alloc(12_000, 7), "audio/mpeg"],
  [/transcriptions|translations/, '{"text":"Hello there."}'],
];

/** Starts them all. Jobs of the native ones end with their first poll. */
export async function startVendors(): Promise<Vendors> {
  const text = {
    chat: await startUpstream({ style: strictChat() }),
    responses: await startUpstream({ style: strictResponses() }),
    messages: await startUpstream({ style: strictMessages() }),
    gemini: await startUpstream({ style: strictGemini() }),
  };
  const media = await startPlainVendor(({ url }) => {
    const [, body, type] = mediaReplies.find(([path]) => path.test(url)) ?? [];
    if (body === undefined) return { status: 404, body: '{"error":{"message":"no such path"}}' };
    return { body, ...(type !== undefined && { headers: { "content-type": type } }) };
  });
  const native = {
    gemini: await startGemini(),
    replicate: await startReplicate(),
    dashscope: await startDashscope(),
    fal: await startFal(),
  };
  const all = [...Object.values(text), media, ...Object.values(native)];
  return {
    text,
    media,
    native,
    clear() {
      for (const each of [...Object.values(text), ...Object.values(native)]) each.clear();
      media.requests.length = 0;
    },
    close: async () => void (await Promise.all(all.map((each) => each.close()))),
  };
}

async function startGemini(): Promise<NativeVendorServer> {
  const vendor = await startNativeVendor({ header: "x-goog-api-key" });
  const jobs = playGemini({
    ...vendor,
    answer: (handler) => vendor.answer((asked) => geminiText(asked) ?? handler(asked)),
  });
  const video = { uri: `${vendor.origin}/files/film-4.mp4` };
  jobs.operation = {
    done: true,
    response: { generateVideoResponse: { generatedSamples: [{ video }] } },
  };
  return vendor;
}

const geminiReply = {
  candidates: [{ content: { role: "model", parts: [{ text: "Hello" }] }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4 },
  modelVersion: "gemini-x",
};

function geminiText({ url }: AskedVendor): VendorAnswer | undefined {
  if (url.includes(":countTokens")) return { body: '{"totalTokens":3}' };
  if (url.includes(":generateContent")) return { body: JSON.stringify(geminiReply) };
  if (!url.includes(":streamGenerateContent")) return undefined;
  const last = `data: ${JSON.stringify(geminiReply)}\r\n\r\n`;
  const event = last.replace(',"finishReason":"STOP"', "");
  return { headers: { "content-type": "text/event-stream" }, body: [event, event, last] };
}

async function startReplicate(): Promise<NativeVendorServer> {
  const vendor = await startNativeVendor({ header: "authorization", scheme: "Bearer " });
  const poll = /^\/v1\/predictions\/([\w-]+)$/;
  const { predictions } = playReplicate({
    ...vendor,
    answer: (handler) =>
      vendor.answer((asked) => {
        const job = predictions.get(polledId(asked, poll));
        if (job !== undefined && job.status !== "canceled") {
          job.status = "succeeded";
          job.output = [`${vendor.origin}/files/out.png`];
        }
        return handler(asked);
      }),
  });
  return vendor;
}

async function startDashscope(): Promise<NativeVendorServer> {
  const vendor = await startNativeVendor({ header: "authorization", scheme: "Bearer " });
  const dashscope = new Dashscope(vendor.origin);
  const url = `${vendor.origin}/files/1.png`;
  vendor.answer((asked) => {
    const job = dashscope.tasks.get(polledId(asked, /^\/api\/v1\/tasks\/([\w-]+)$/));
    if (job?.status === "PENDING") {
      job.output = { results: [{ url }], task_metrics: { TOTAL: 1, SUCCEEDED: 1, FAILED: 0 } };
      job.usage = { image_count: 1 };
      job.status = "SUCCEEDED";
    }
    return dashscope.answer(asked);
  });
  return vendor;
}

/**
 * The queue, and direct calls below `/run`.
 *
 * @param submitMs how long the answer to a submit takes, in milliseconds, once the job is there. Default: no time
 */
export async function startFal(submitMs?: () => number): Promise<NativeVendorServer> {
  const vendor = await startNativeVendor({ header: "authorization", scheme: "Key " });
  const fal = new Fal();
  const file = `${vendor.origin}/files/1.png`;
  const body = falResult.replace("https://v3.fal.media/files/a/1.png", file);
  vendor.answer(async (asked) => {
    const { url, method } = asked;
    if (url.startsWith("/run/")) return fal.direct({ ...asked, url: url.slice("/run".length) });
    const job = fal.jobs.get(polledId(asked, /\/requests\/([\w-]+)\/status(?:\?.*)?$/));
    if (job?.status === "IN_QUEUE") {
      job.status = "COMPLETED";
      job.result = { body };
    }
    const answer = fal.queued(asked, vendor.origin);
    if (method === "POST" && submitMs !== undefined) await sleep(submitMs());
    return answer;
  });
  return vendor;
}

/** The id of the job that is polled: its first poll ends it. */
function polledId({ method, url }: AskedVendor, poll: RegExp): string {
  return (method === "GET" && poll.exec(url)?.[1]) || "";
}

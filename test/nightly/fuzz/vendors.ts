/** Simulated vendors of every kind, for a gateway in a separate process. */
import { setTimeout as sleep } from "node:timers/promises";
import { Dashscope } from "../../behaviour/native/dashscope-vendor.ts";
import { Fal, falResult } from "../../behaviour/native/fal-vendor.ts";
import { answerAboutCaches, type CacheState } from "../../behaviour/native/gemini-cache-vendor.ts";
import { playGemini } from "../../behaviour/native/gemini-vendor.ts";
import {
  type AskedVendor,
  type NativeVendorServer,
  startNativeVendor,
  type VendorAnswer,
  type VendorHandler,
} from "../../behaviour/native/native-vendor.ts";
import { playReplicate } from "../../behaviour/native/replicate-vendor.ts";
import {
  type PlainAnswer,
  type PlainVendor,
  startPlainVendor,
} from "../../support/plain-vendor.ts";
import { strictChat } from "../../support/upstream/chat-strict.ts";
import { strictGemini } from "../../support/upstream/gemini-strict.ts";
import { strictMessages } from "../../support/upstream/messages-strict.ts";
import { strictResponses } from "../../support/upstream/responses-strict.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";

/** The styles that text vendors speak. */
export const textVendors = ["chat", "responses", "messages", "gemini"] as const;

/** A style of a text vendor. */
export type TextVendor = (typeof textVendors)[number];

/** Running vendors. */
export interface Vendors {
  readonly text: Readonly<Record<TextVendor, Upstream>>;
  /**
   * Embeddings, images, audio, completions, moderations and rerank in OpenAI's, Cohere's and Jina's
   * form.
   */
  readonly media: PlainVendor;
  readonly native: Readonly<Record<NativeName, NativeVendorServer>>;
  /** Drops recorded requests, so that long runs do not accumulate them. */
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
  [
    /rerank/,
    '{"model":"v","results":[{"index":0,"relevance_score":0.98}],"usage":{"total_tokens":40},"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}}}',
  ],
  [/moderations/, '{"id":"m","model":"v","results":[{"flagged":false,"categories":{}}]}'],
];

const completion = (text: string, rest: object) =>
  JSON.stringify({
    ...{ id: "c", object: "text_completion", created: 1, model: "v" },
    choices: [{ text, index: 0, logprobs: null, finish_reason: "stop" }],
    ...rest,
  });
const completionUsage = { usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } };

/** Legacy completions, whole or as a stream. */
function answerCompletion(body: string): PlainAnswer {
  if (!/"stream" *: *true/.test(body)) return { body: completion(" world", completionUsage) };
  const events = [completion(" wor", {}), completion("ld", completionUsage), "[DONE]"];
  const headers = { "content-type": "text/event-stream" };
  return { headers, body: events.map((event) => `data: ${event}\n\n`).join("") };
}

/** Starts them all. Jobs of the native ones end with their first poll. */
export async function startVendors(): Promise<Vendors> {
  const text = {
    chat: await startUpstream({ style: strictChat() }),
    responses: await startUpstream({ style: strictResponses() }),
    messages: await startUpstream({ style: strictMessages() }),
    gemini: await startUpstream({ style: strictGemini() }),
  };
  const media = await startPlainVendor(({ url, body: asked }) => {
    if (/\/v1\/completions(?:\?|$)/.test(url)) return answerCompletion(asked);
    const [, body, type] = mediaReplies.find(([path]) => path.test(url)) ?? [];
    if (body === undefined) return { status: 404, body: '{"error":{"message":"no such path"}}' };
    // With its length: the last bytes of a chunked reply are its framing, and no content.
    const length = { "content-length": String(Buffer.byteLength(body)) };
    return { body, headers: { ...length, ...(type !== undefined && { "content-type": type }) } };
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
  const caches: CacheState = { caches: new Map(), tokens: 1_000, aheadMs: 0 };
  let count = 0;
  const jobs = playGemini({
    ...vendor,
    answer: (handler) =>
      vendor.answer((asked) => {
        const text = geminiText(asked) ?? geminiCache(asked, caches);
        const isUpload = asked.url.startsWith("/upload/");
        return text ?? withOwnNames(handler(asked), asked, isUpload ? ++count : 0);
      }),
  });
  const video = { uri: "URI" };
  jobs.operation = {
    done: true,
    response: { generateVideoResponse: { generatedSamples: [{ video }] } },
  };
  return vendor;
}

/**
 * Each upload and each file has a unique name, because the name of another account's file would be
 * refused.
 */
async function withOwnNames(
  answering: ReturnType<VendorHandler>,
  asked: AskedVendor,
  count: number,
): Promise<VendorAnswer | undefined> {
  const answer = await answering;
  if (answer === undefined) return answer;
  const [operation] = /op\d+$/.exec(asked.url) ?? [];
  const upload = count === 0 ? "" : String(count);
  const rename = (text: string): string =>
    text
      .replaceAll(/up1\b/g, `up${upload || 1}`)
      .replaceAll(/files\/abc\b/g, `files/abc${upload}`)
      .replace('"URI"', `"${originOf(asked)}/files/film-4.mp4?of=${operation}"`);
  const headers = Object.entries(answer.headers ?? {}).map(([name, text]) => [name, rename(text)]);
  const body = typeof answer.body === "string" ? rename(answer.body) : answer.body;
  return { ...answer, headers: Object.fromEntries(headers), ...(body !== undefined && { body }) };
}

function geminiCache(
  { method, url, headers, json, body }: AskedVendor,
  vendor: CacheState,
): VendorAnswer | undefined {
  if (!url.includes("/cachedContents") && json?.["cachedContent"] === undefined) return undefined;
  const key = String(headers["x-goog-api-key"]);
  const [status, reply] = answerAboutCaches({ vendor, key, method, url, text: body.toString() });
  return { status, body: JSON.stringify(reply) };
}

const geminiReply = {
  candidates: [{ content: { role: "model", parts: [{ text: "Hello" }] }, finishReason: "STOP" }],
  usageMetadata: geminiUsage(2),
  modelVersion: "gemini-x",
};

/**
 * Of a reply with so many tokens: a fourth of its letters, as the gateway estimates it if a stream
 * breaks.
 */
function geminiUsage(tokens: number) {
  return { promptTokenCount: 3, candidatesTokenCount: tokens, totalTokenCount: 3 + tokens };
}

function geminiText({ url, json, method }: AskedVendor): VendorAnswer | undefined {
  const [, file] = /^\/v1beta\/(files\/\w+)$/.exec(url) ?? [];
  if (file !== undefined && method !== "POST")
    return { body: `{"name":"${file}","state":"ACTIVE"}` };
  if (json?.["cachedContent"] !== undefined) return undefined;
  if (url.includes(":countTokens")) return { body: '{"totalTokens":3}' };
  if (url.includes(":generateContent")) return { body: JSON.stringify(geminiReply) };
  if (!url.includes(":streamGenerateContent")) return undefined;
  const event = (tokens: number, isLast = false): string => {
    const text = JSON.stringify({ ...geminiReply, usageMetadata: geminiUsage(tokens) });
    return `data: ${isLast ? text : text.replace(',"finishReason":"STOP"', "")}\r\n\r\n`;
  };
  const body = [event(2), event(4), event(6, true)];
  return { headers: { "content-type": "text/event-stream" }, body };
}

/**
 * Returns the address under which the gateway reaches the vendor, possibly a proxy. Files have the
 * same address.
 */
function originOf({ headers }: AskedVendor): string {
  return `http://${headers.host}`;
}

/** Jobs whose request contains it run until they are cancelled. */
export const heldText = "until cancelled";

/** Held jobs, by the vendor's IDs. */
class HeldJobs {
  readonly #ids = new Set<string>();

  /** Records the job of an answer, if its request holds it. */
  note({ body }: AskedVendor, answer: VendorAnswer | undefined): VendorAnswer | undefined {
    const told = answer?.body;
    const text = typeof told === "string" || Buffer.isBuffer(told) ? told.toString() : "";
    const [, id] = /"(?:id|task_id|request_id)": *"([\w-]{20,})"/.exec(text) ?? [];
    if (id !== undefined && body.includes(heldText)) this.#ids.add(id);
    return answer;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }
}

async function startReplicate(): Promise<NativeVendorServer> {
  const vendor = await startNativeVendor({ header: "authorization", scheme: "Bearer " });
  const held = new HeldJobs();
  const poll = /^\/v1\/predictions\/([\w-]+)$/;
  let files = 0;
  const { predictions } = playReplicate({
    ...vendor,
    answer: (handler) =>
      vendor.answer((asked) => {
        const [, file] = /^\/v1\/files(?:\/(\w+))?$/.exec(asked.url) ?? [asked.url, asked.url];
        if (file !== asked.url) return { body: `{"id":"${file ?? `f${++files}`}","urls":{}}` };
        const job = predictions.get(polledId(asked, poll));
        if (job !== undefined && job.status !== "canceled" && !held.has(job.id)) {
          job.status = "succeeded";
          job.output = [`${originOf(asked)}/files/${job.id}.png`];
        }
        const answer = handler(asked);
        return answer instanceof Promise ? answer : held.note(asked, answer);
      }),
  });
  return vendor;
}

async function startDashscope(): Promise<NativeVendorServer> {
  const vendor = await startNativeVendor({ header: "authorization", scheme: "Bearer " });
  const dashscope = new Dashscope(vendor.origin);
  const held = new HeldJobs();
  vendor.answer((asked) => {
    const job = dashscope.tasks.get(polledId(asked, /^\/api\/v1\/tasks\/([\w-]+)$/));
    if (job?.status === "PENDING" && !held.has(job.id)) {
      const url = `${originOf(asked)}/files/${job.id}.png`;
      job.output = { results: [{ url }], task_metrics: { TOTAL: 1, SUCCEEDED: 1, FAILED: 0 } };
      job.usage = { image_count: 1 };
      job.status = "SUCCEEDED";
    }
    return held.note(asked, dashscope.answer(asked));
  });
  return vendor;
}

/**
 * The queue, and direct calls below `/run`.
 *
 * @param submitMs how long the answer to a submit takes, in milliseconds, once the job is there.
 * Default: no time
 */
export async function startFal(submitMs?: () => number): Promise<NativeVendorServer> {
  const vendor = await startNativeVendor({ header: "authorization", scheme: "Key " });
  const fal = new Fal();
  const held = new HeldJobs();
  vendor.answer(async (asked) => {
    const { url, method } = asked;
    if (url.startsWith("/run/")) return fal.direct({ ...asked, url: url.slice("/run".length) });
    const job = fal.jobs.get(polledId(asked, /\/requests\/([\w-]+)\/status(?:\?.*)?$/));
    if (job?.status === "IN_QUEUE" && !held.has(job.id)) {
      const file = `${originOf(asked)}/files/${job.id}.png`;
      job.status = "COMPLETED";
      job.result = { body: falResult.replace("https://v3.fal.media/files/a/1.png", file) };
    }
    const answer = held.note(asked, fal.queued(asked, originOf(asked)));
    if (method === "POST" && submitMs !== undefined) await sleep(submitMs());
    return answer;
  });
  return vendor;
}

/** The id of the job that is polled: its first poll ends it. */
function polledId({ method, url }: AskedVendor, poll: RegExp): string {
  return (method === "GET" && poll.exec(url)?.[1]) || "";
}

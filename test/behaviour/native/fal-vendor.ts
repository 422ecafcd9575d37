/** fal, simulated: strict about requests, with a queue and direct calls at separate addresses. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { caFile, type Receiver, startReceiver } from "../../support/receiver.ts";
import { type Gateway, startGateway, type TestModel } from "../../support/gateway.ts";
import {
  type AskedVendor,
  type NativeVendorServer,
  often,
  startNativeVendor,
  type VendorAnswer,
} from "./native-vendor.ts";
import { unitModel } from "./unit-model.ts";

/** A gateway, and fal behind it. */
export interface FalGateway extends Gateway {
  /** Where the queue is. */
  readonly queue: NativeVendorServer;
  /** Where direct calls are. */
  readonly run: NativeVendorServer;
  readonly fal: Fal;
  readonly receiver: Receiver;
}

const models: Readonly<Record<string, TestModel>> = {
  "fal-ai/flux/schnell": unitModel(ModelType.IMAGE, ["fal", "fal-ai/flux/schnell"], {
    image: 3_000_000n,
  }),
  "our/flux": unitModel(ModelType.IMAGE, ["fal", "fal-ai/flux/dev"], { image: 25_000_000n }),
  "fal-ai/veo3": unitModel(ModelType.VIDEO, ["fal", "fal-ai/veo3"], { second: 400_000_000n }),
  "fal-ai/any-llm": { routes: [{ vendor: "fal", model: "fal-ai/any-llm" }] },
  "our/gemini": { routes: [{ vendor: "fal", model: "fal-ai/router/google/gemini" }] },
  "fal-ai/kokoro": unitModel(ModelType.AUDIO, ["fal", "fal-ai/kokoro"], { character: 20_000n }),
  "fal-ai/f5-tts": unitModel(ModelType.AUDIO, ["fal", "fal-ai/f5-tts"], { second: 1_000_000n }),
};

/** Options of a test. */
export interface FalGatewayOptions {
  /** Where customers reach the gateway. Default: where it listens. */
  readonly publicUrl?: string;
  /** The largest age of a job's report. Default: a moment. */
  readonly refreshMs?: number;
}

/** Starts all. */
export async function startFalGateway({
  publicUrl,
  refreshMs = often.refreshMs,
}: FalGatewayOptions = {}): Promise<FalGateway> {
  const receiver = await startReceiver();
  const credential = { header: "authorization", scheme: "Key " };
  const queue = await startNativeVendor(credential);
  const run = await startNativeVendor(credential);
  const fal = new Fal();
  run.answer((asked) => fal.direct(asked));
  queue.answer((asked) => fal.queued(asked, queue.origin));
  const gateway = await startGateway({
    taskTimings: { ...often, refreshMs },
    vendors: {
      fal: {
        kind: "fal",
        baseUrl: queue.origin,
        runBaseUrl: run.origin,
        apiKey: queue.secret,
        nativePrefix: "/fal",
        onDisconnect: "drain",
      },
    },
    models,
    webhooks: { allowHosts: ["localhost"], caFile },
    ...(publicUrl && { settings: { publicUrl } }),
  });
  return {
    ...gateway,
    queue,
    run,
    fal,
    receiver,
    async close() {
      await gateway.close();
      await receiver.close();
      await queue.close();
      await run.close();
    },
  };
}

/** A result, with white space and numbers that a rewrite would change. */
export const falResult = `{"images": [{"url":"https://v3.fal.media/files/a/1.png","width":1024,"height":768,"content_type":"image/png"}],
 "timings":{"inference": 0.10},"seed":9007199254740993,"has_nsfw_concepts":[false],"prompt":"see https://queue.fal.run/x"}\r\n`;

/** Events of a stream: each shows the picture anew. */
export const falEvents: readonly string[] = [1, 2, 3].map(
  (step) =>
    `data: {"images": [{"url":"data:image/jpeg;base64,/9j/${step}","content_type":"image/jpeg"}],"seed":9007199254740993, "progress": 0.${step}0}\r\n\r\n`,
);

/** The result of a language model. */
export const textResult = `{"output":"Hello","reasoning":null,"partial":false,"error":null,"usage":{"prompt_tokens":12,"completion_tokens":34}}`;

/** Its events repeat the text so far. */
const textEvents: readonly string[] = [
  'data: {"output":"Hel","partial":true}\n\n',
  'data: {"output":"Hello","partial":true}\n\n',
  `data: ${textResult}\n\n`,
];

/** Where a file can be uploaded. */
function upload({ json }: AskedVendor): VendorAnswer {
  if (typeof json?.["file_name"] !== "string") return falError(422, "file_name is required");
  const files = "https://v3.fal.media/files";
  return { body: JSON.stringify({ upload_url: `${files}/up?sig=1`, file_url: `${files}/a.png` }) };
}

/** A refusal in its form. */
export function falError(status: number, detail: unknown): VendorAnswer {
  return {
    status,
    headers: { "x-fal-request-id": "fal-refused" },
    body: JSON.stringify({ detail }),
  };
}

/** Its answers. */
export class Fal {
  /** Replaces its answer to the next submission; polls of workers are answered as usual. */
  next: VendorAnswer | undefined;
  /** Billed units of a direct call. Undefined if there are none. */
  billed: string | undefined;

  direct(asked: AskedVendor): VendorAnswer | undefined {
    const next = this.#takeNext(asked);
    if (next !== undefined) return next;
    const refused = invalid(asked);
    if (refused !== undefined) return refused;
    const headers: Record<string, string> = {
      "x-fal-request-id": "fal-request-1",
      ...(this.billed !== undefined && { "x-fal-billable-units": this.billed }),
    };
    if (asked.url.startsWith("/storage/upload/initiate")) return upload(asked);
    const [path = ""] = asked.url.split("?");
    const [, model, stream] =
      /^\/(fal-ai\/[\w-]+(?:\/(?!stream)[\w-]+)?)(\/stream)?$/.exec(path) ?? [];
    if (model === undefined) return falError(404, `Application "${asked.url}" not found`);
    if (model === "fal-ai/any-llm" || model === "fal-ai/router") {
      const isStream = stream !== undefined;
      return isStream
        ? { headers: { ...headers, "content-type": "text/event-stream" }, body: textEvents }
        : { headers, body: textResult };
    }
    if (stream !== undefined) {
      return { headers: { ...headers, "content-type": "text/event-stream" }, body: falEvents };
    }
    if (model === "fal-ai/veo3") {
      return { headers, body: '{"video":{"url":"https://v3.fal.media/1.mp4","duration":4.5}}' };
    }
    if (model === "fal-ai/f5-tts" || model === "fal-ai/kokoro") {
      return { headers, body: '{"audio_url":{"url":"https://v3.fal.media/1.wav"}}' };
    }
    return { headers, body: falResult };
  }

  #takeNext({ method }: AskedVendor): VendorAnswer | undefined {
    if (method !== "POST") return undefined;
    const { next } = this;
    this.next = undefined;
    return next;
  }

  readonly jobs = new Map<string, FalJob>();
  #made = 0;

  /** The newest job. */
  last(): FalJob {
    return [...this.jobs.values()].at(-1) as FalJob;
  }

  /** Ends the newest job. */
  end(result: VendorAnswer): void {
    const job = this.last();
    job.status = "COMPLETED";
    job.result = result;
  }

  queued(asked: AskedVendor, origin: string): VendorAnswer | undefined {
    const next = this.#takeNext(asked);
    if (next !== undefined) return next;
    const [path = "", query = ""] = asked.url.split("?");
    if (path.startsWith("/files/")) return { headers: { "content-type": "image/png" }, body: png };
    const [, app = "", id = "", rest = ""] =
      /^\/([\w-]+\/[\w-]+)\/requests\/([\w-]+)(\/\w+(?:\/stream)?)?$/.exec(path) ?? [];
    const job = this.jobs.get(id);
    if (id === "") return this.#submit(asked, { path, query, origin });
    if (job?.app !== app) return falError(404, `Request ${id} not found`);
    const { method } = asked;
    if (method === "GET" && rest === "/status") return statusOf(job, origin);
    if (method === "GET" && rest === "/status/stream") return streamOf(job, origin);
    if (method === "GET" && rest === "")
      return job.result ?? falError(400, "Request is still in progress");
    if (method === "PUT" && rest === "/cancel") return cancel(job, asked);
    return falError(405, "Method Not Allowed");
  }

  #submit(
    asked: AskedVendor,
    { path, query, origin }: { path: string; query: string; origin: string },
  ): VendorAnswer {
    if (query.includes("fal_webhook")) return falError(400, "a callback of a customer reached fal");
    const refused = invalid(asked);
    if (refused !== undefined) return refused;
    const [, app] = /^\/(fal-ai\/[\w-]+)(?:\/[\w-]+)*$/.exec(path) ?? [];
    if (app === undefined) return falError(404, `Application "${path}" not found`);
    const id = `job-${++this.#made}-${"x".repeat(120)}`;
    const job: FalJob = { id, app, status: "IN_QUEUE", result: undefined };
    this.jobs.set(id, job);
    const { body } = statusOf(job, origin);
    return { headers: { "x-fal-request-id": id }, ...(body !== undefined && { body }) };
  }
}

/** A job as fal has it. */
export interface FalJob {
  readonly id: string;
  /** Its addresses have nothing else of the model's name. */
  readonly app: string;
  status: string;
  result: VendorAnswer | undefined;
}

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

function written({ id, app, status }: FalJob, origin: string): string {
  const at = `${origin}/${app}/requests/${id}`;
  return `{"status":"${status}", "request_id":"${id}","response_url":"${at}","status_url":"${at}/status",  "cancel_url": "${at}/cancel","logs":[{"message":"see ${at}"}],"metrics":{"inference_time": 0.10}}`;
}

function statusOf(job: FalJob, origin: string): VendorAnswer {
  return { status: job.status === "COMPLETED" ? 200 : 202, body: written(job, origin) };
}

function streamOf(job: FalJob, origin: string): VendorAnswer {
  const states = job.status === "COMPLETED" ? [job] : [job, { ...job, status: "COMPLETED" }];
  const events = states.map((each) => `data: ${written(each, origin)}\r\n\r\n`);
  // Cut in the middle of an address.
  const whole = events.join("");
  const cut = whole.indexOf("status_url") + 22;
  return {
    headers: { "content-type": "text/event-stream" },
    body: [whole.slice(0, cut), whole.slice(cut)],
  };
}

function cancel(job: FalJob, { body }: AskedVendor): VendorAnswer {
  if (body.length > 0) return falError(422, "no body is wanted");
  if (job.status === "COMPLETED") return { status: 400, body: '{"status":"ALREADY_COMPLETED"}' };
  job.status = "COMPLETED";
  job.result = falError(400, "Request was cancelled");
  return { status: 202, body: '{"status":"CANCELLATION_REQUESTED"}' };
}

/**
 * Returns its error for a request that violates its documentation; undefined for a valid request.
 */
function invalid({ method, json, headers }: AskedVendor): VendorAnswer | undefined {
  if (method !== "POST") return falError(405, "Method Not Allowed");
  if (headers["content-type"] !== "application/json")
    return falError(415, "Unsupported media type");
  if (typeof json?.["prompt"] === "string" || json?.["file_name"] !== undefined) return undefined;
  return falError(422, [
    { loc: ["body", "prompt"], msg: "field required", type: "value_error.missing" },
  ]);
}

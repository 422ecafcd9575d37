/** Gemini's jobs and files, as far as its clients know them. */
import type { AskedVendor, NativeVendorServer, VendorAnswer } from "./native-vendor.ts";

/** Settings that a test changes at run time. */
export interface GeminiJobs {
  /** State of operations. Default: running. */
  operation: object;
  /** State of interactions. */
  interaction: object;
}

/** An ended interaction. */
export const interactionDone = {
  status: "completed",
  outputs: [{ type: "text", text: "Hello" }],
  steps: [{ type: "model_output", content: [{ type: "text", text: "Hello" }] }],
  usage: {
    total_input_tokens: 10,
    total_output_tokens: 20,
    total_thought_tokens: 5,
    total_tokens: 35,
  },
};

/** Its events. */
export const interactionEvents: readonly string[] = [
  'event: interaction.created\ndata: {"event_type": "interaction.created", "interaction": {"id": "int-s", "status": "in_progress"}}\n\n',
  'event: step.start\ndata: {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}}\n\n',
  'event: step.delta\ndata: {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Hello"}}\n\n',
  'event: step.stop\ndata: {"event_type": "step.stop", "index": 0}\n\n',
  `event: interaction.completed\ndata: {"event_type": "interaction.completed", "interaction": ${JSON.stringify({ id: "int-s", ...interactionDone })}}\n\n`,
  "event: done\ndata: [DONE]\n\n",
];

/** Lets a simulated vendor answer as Gemini does about jobs and files. */
export function playGemini(vendor: NativeVendorServer): GeminiJobs {
  const jobs: GeminiJobs = { operation: {}, interaction: { status: "in_progress" } };
  let count = 0;
  vendor.answer((asked) => answer(asked, { jobs, origin: vendor.origin, next: () => ++count }));
  return jobs;
}

interface Playing {
  readonly jobs: GeminiJobs;
  readonly origin: string;
  readonly next: () => number;
}

function answer(
  { method, url, json, headers, body }: AskedVendor,
  { jobs, origin, next }: Playing,
): VendorAnswer | undefined {
  const { pathname: asWritten, searchParams } = new URL(url, origin);
  const pathname = asWritten.replace(/^(\/upload)?\/v1\//, "$1/v1beta/");
  if (pathname.endsWith(":predictLongRunning")) {
    return { body: `{"name": "models/veo-x/operations/op${next()}"}` };
  }
  const [, name] = /^\/v1beta\/(models\/veo-x\/operations\/\w+)$/.exec(pathname) ?? [];
  if (name !== undefined) return { body: JSON.stringify({ name, ...jobs.operation }) };
  if (pathname === "/v1beta/interactions" && method === "POST") {
    if ("webhook_config" in (json ?? {})) return { status: 400, body: "{}" };
    if (json?.["stream"] === true) {
      return { headers: { "content-type": "text/event-stream" }, body: interactionEvents };
    }
    const id = `int-${next()}`;
    const state = json?.["background"] === true ? { status: "queued" } : interactionDone;
    return { body: JSON.stringify({ id, object: "interaction", ...state }) };
  }
  const [, model] = /^\/v1beta\/(models\/[\w-]+)$/.exec(pathname) ?? [];
  if (model !== undefined && method === "GET") return { body: JSON.stringify({ name: model }) };
  const [, id, cancel] = /^\/v1beta\/interactions\/([\w-]+)(\/cancel)?$/.exec(pathname) ?? [];
  if (id !== undefined) {
    if (searchParams.get("stream") === "true") {
      return { headers: { "content-type": "text/event-stream" }, body: interactionEvents.slice(2) };
    }
    if (cancel !== undefined) jobs.interaction = { status: "cancelled" };
    return { body: JSON.stringify({ id, object: "interaction", ...jobs.interaction }) };
  }
  if (pathname === "/upload/v1beta/files") {
    if (headers["x-goog-upload-command"] === "start") {
      const upload = `${origin}/upload/v1beta/files?upload_id=up1&upload_protocol=resumable`;
      return { headers: { "x-goog-upload-url": upload, "x-goog-upload-status": "active" } };
    }
    const file = {
      name: "files/abc",
      uri: `${origin}/v1beta/files/abc`,
      state: "ACTIVE",
      sizeBytes: String(body.length),
    };
    return { headers: { "x-goog-upload-status": "final" }, body: JSON.stringify({ file }) };
  }
  if (pathname === "/v1beta/files/abc") {
    return {
      body: `{"name": "files/abc", "uri": "${origin}/v1beta/files/abc", "state": "ACTIVE"}`,
    };
  }
  if (/^\/v1beta\/files\/(?:abc|film1):download$/.test(pathname)) {
    return { status: 302, headers: { location: `${origin}/files/film` } };
  }
  if (pathname.endsWith(":generateContent")) return { body: '{"candidates": []}' };
  return undefined;
}

/** Replicate as its clients know it: predictions that run until the test ends them. */
import type { AskedVendor, NativeVendorServer, VendorAnswer } from "./native-vendor.ts";

/** One prediction as the vendor has it. */
export interface Prediction {
  readonly id: string;
  status: string;
  output: unknown;
  error: string | null;
  readonly input: unknown;
  readonly version: string;
  /** Default: how long it ran. */
  readonly metrics?: object;
}

/** Metrics of a text. */
const llamaMetrics = { input_token_count: 12, output_token_count: 34, predict_time: 0.5 };

/** The predictions of a simulation. */
export interface Replicate {
  readonly predictions: Map<string, Prediction>;
  /** The newest. */
  last(): Prediction;
}

/** Lets a simulated vendor answer as Replicate. */
export function playReplicate(vendor: NativeVendorServer): Replicate {
  const predictions = new Map<string, Prediction>();
  vendor.answer((asked) => answer(asked, vendor.origin, predictions));
  return {
    predictions,
    last: () => [...predictions.values()].at(-1) as Prediction,
  };
}

function answer(
  asked: AskedVendor,
  origin: string,
  predictions: Map<string, Prediction>,
): VendorAnswer | undefined {
  const { method, json, headers } = asked;
  // As there, members of a query that mean nothing change nothing.
  const [url = ""] = asked.url.split("?");
  const create = /^\/v1\/(?:models\/([\w.-]+\/[\w.-]+)\/)?predictions$/.exec(url);
  if (method === "POST" && create !== null) {
    if ("webhook" in (json ?? {}) || "webhook_events_filter" in (json ?? {})) {
      return { status: 422, body: '{"detail": "a callback of a customer reached the vendor"}' };
    }
    const input = json?.["input"];
    if (typeof input !== "object" || input === null)
      return { status: 422, body: '{"detail": "- input is required"}' };
    if (create[1] === "labs/llama") {
      const prediction: Prediction = {
        id: `p${predictions.size + 1}`,
        status: "succeeded",
        output: ["Hel", "lo ", "https://a.example"],
        error: null,
        input,
        version: "labs/llama",
        metrics: (input as { prompt?: unknown }).prompt === "uncounted" ? {} : llamaMetrics,
      };
      predictions.set(prediction.id, prediction);
      return { status: 201, body: write(prediction, origin) };
    }
    const isInline = (input as { prompt?: unknown }).prompt === "inline";
    const prediction: Prediction = {
      id: `p${predictions.size + 1}${"x".repeat(120)}`,
      status: headers["prefer"] === "wait" ? "succeeded" : "starting",
      output:
        headers["prefer"] === "wait"
          ? [isInline ? inlinePicture : `${origin}/files/out.png`]
          : null,
      error: null,
      input,
      version: create[1] ?? String(json?.["version"]),
    };
    predictions.set(prediction.id, prediction);
    return { status: 201, body: write(prediction, origin) };
  }
  const [, id = "", cancel] = /^\/v1\/predictions\/([\w-]+)(\/cancel)?$/.exec(url) ?? [];
  const found = predictions.get(id);
  if (found !== undefined) {
    if (cancel !== undefined && method === "POST") found.status = "canceled";
    return { body: write(found, origin) };
  }
  if (url.startsWith("/streams/")) {
    return {
      headers: { "content-type": "text/event-stream" },
      body: [
        "event: output\ndata: Hel\n\n",
        "event: output\ndata: lo\n\n",
        "event: done\ndata: {}\n\n",
      ],
    };
  }
  if (method === "POST" && url === "/v1/files") {
    return {
      status: 201,
      body: JSON.stringify({ id: "file1", urls: { get: `${origin}/v1/files/file1` } }),
    };
  }
  if (url === "/v1/files/file1") return { body: '{"id": "file1"}' };
  if (url === `/v1/models/labs/flux/versions/${fluxVersion}`) {
    return { body: `{"id": "${fluxVersion}"}` };
  }
  if (/^\/v1\/models\/[\w-]+\/[\w-]+\/versions\/\w+$/.test(url)) {
    return { status: 404, body: '{"detail": "The requested resource could not be found."}' };
  }
  if (/^\/v1\/models\/[\w-]+\/[\w-]+\/versions$/.test(url)) {
    return { body: '{"previous": null, "next": null, "results": [{"id": "v1"}]}' };
  }
  if (/^\/v1\/models\/[\w-]+\/[\w-]+$/.test(url)) return { body: '{"name": "flux"}' };
  return undefined;
}

/** A version of labs/flux, which is configured without one. */
export const fluxVersion = "f".repeat(64);

/** With unusual numbers and white space. */
function write(prediction: Prediction, origin: string): string {
  const { id, status, output, error, input, version, metrics = { predict_time: 1.5 } } = prediction;
  const at = `${origin}/v1/predictions/${id}`;
  return `{"id":"${id}", "version": ${JSON.stringify(version)}, "status":"${status}",
 "input": ${JSON.stringify(input)}, "output": ${JSON.stringify(output)}, "error": ${JSON.stringify(error)},
 "seed": 9007199254740993, "guidance": -0.10, "logs": "see ${origin}/v1/predictions",
 "metrics": ${JSON.stringify(metrics)}, "created_at": "2026-01-01T00:00:00Z", "started_at": null, "completed_at": null,
 "urls": {"get":"${at}", "cancel": "${at}/cancel", "web": "https://replicate.com/p/${id}", "stream": "${origin}/streams/${id}"}}`;
}

const inlinePicture =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

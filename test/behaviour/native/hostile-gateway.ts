/** A gateway with the native interfaces of all four vendors, for malicious input. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import {
  type Customer,
  type Gateway,
  startGateway,
  type TestModel,
} from "../../support/gateway.ts";
import { type AskedVendor, type NativeVendorServer, startNativeVendor } from "./native-vendor.ts";
import { unitModel } from "./unit-model.ts";

/** The names of the vendors, and of their prefixes. */
export type VendorName = "gemini" | "dashscope" | "fal" | "replicate";

/** Both sides. */
export interface HostileGateway extends Gateway {
  readonly vendors: Readonly<Record<VendorName, NativeVendorServer>>;
  /** Returns the number of requests that reached any vendor. */
  asked(): number;
}

const kinds: Readonly<Record<VendorName, { readonly header: string; readonly scheme?: string }>> = {
  gemini: { header: "x-goog-api-key" },
  dashscope: { header: "authorization", scheme: "Bearer " },
  fal: { header: "authorization", scheme: "Key " },
  replicate: { header: "authorization", scheme: "Bearer " },
};

/** A second costs 0.05 USD, a picture 0.003. */
const prices = { second: 50_000_000n, image: 3_000_000n };

function film(vendor: VendorName, model: string, minSeconds?: number): TestModel {
  return { ...unitModel(ModelType.VIDEO, [vendor, model], { second: prices.second }), minSeconds };
}

function picture(vendor: VendorName, model: string): TestModel {
  return unitModel(ModelType.IMAGE, [vendor, model], { image: prices.image });
}

/** Starts it. */
export async function startHostileGateway(): Promise<HostileGateway> {
  const names = Object.keys(kinds) as VendorName[];
  const started = await Promise.all(
    names.map(async (name) => [name, await startNativeVendor(kinds[name])] as const),
  );
  const vendors = Object.fromEntries(started) as Record<VendorName, NativeVendorServer>;
  const gateway = await startGateway({
    vendors: Object.fromEntries(
      started.map(([name, { origin, secret }]) => [
        name,
        {
          kind: name,
          baseUrl: origin,
          apiKey: secret,
          nativePrefix: `/${name}`,
          ...(name === "fal" && { runBaseUrl: origin }),
        },
      ]),
    ),
    models: {
      "gemini-x": { routes: [{ vendor: "gemini", model: "gemini-x" }] },
      veo: film("gemini", "veo"),
      "veo-fixed": film("gemini", "veo-fixed", 8),
      "wan-t2v": film("dashscope", "wan-t2v"),
      "wan-fixed": film("dashscope", "wan-fixed", 8),
      "wan-t2i": picture("dashscope", "wan-t2i"),
      "qwen-plus": { routes: [{ vendor: "dashscope", model: "qwen-plus" }] },
      "fal-ai/veo3": film("fal", "fal-ai/veo3"),
      "fal-ai/fixed": film("fal", "fal-ai/fixed", 8),
      "fal-ai/flux": picture("fal", "fal-ai/flux"),
      "labs/film": film("replicate", "labs/film"),
      "labs/fixed": film("replicate", "labs/fixed", 8),
      "labs/flux": picture("replicate", "labs/flux"),
    },
  });
  return {
    ...gateway,
    vendors,
    asked: () => started.reduce((sum, [, { requests }]) => sum + requests.length, 0),
    async close() {
      await gateway.close();
      await Promise.all(started.map(([, vendor]) => vendor.close()));
    },
  };
}

/** A request. */
export interface Hostile {
  readonly path: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request; its headers override the customer's key. */
export async function askHostile(
  { url }: Pick<Gateway, "url">,
  { key }: Customer,
  { path, body, headers }: Hostile,
): Promise<{ readonly status: number; readonly text: string }> {
  const own = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const init = { method: "POST", body, headers: { ...own, ...headers } };
  const response = await fetch(`${url}${path}`, init);
  return { status: response.status, text: await response.text() };
}

const async = { "x-dashscope-async": "enable" };
const dashscopeFilms = "/dashscope/api/v1/services/aigc/video-generation/video-synthesis";

/** A film of each vendor, by what is said of its length: JSON members, with a comma before them. */
export const films: Readonly<Record<VendorName, (said: string, model?: string) => Hostile>> = {
  gemini: (said, model = "veo") => ({
    path: `/gemini/v1beta/models/${model}:predictLongRunning`,
    body: `{"instances":[{"prompt":"ok"}],"parameters":{"aspectRatio":"16:9"${said}}}`,
  }),
  dashscope: (said, model = "wan-t2v") => ({
    path: dashscopeFilms,
    body: `{"model":"${model}","input":{"prompt":"ok"},"parameters":{"size":"1280*720"${said}}}`,
    headers: async,
  }),
  fal: (said, model = "fal-ai/veo3") => ({
    path: `/fal/queue/${model}`,
    body: `{"prompt":"ok"${said}}`,
  }),
  replicate: (said, model = "labs/film") => ({
    path: `/replicate/v1/models/${model}/predictions`,
    body: `{"input":{"prompt":"ok"${said}}}`,
  }),
};

/** Each vendor's name of a video's length. */
export const lengthNames: Readonly<Record<VendorName, string>> = {
  gemini: "durationSeconds",
  dashscope: "duration",
  fal: "duration",
  replicate: "duration",
};

/** The model of each vendor whose films are 8 s at the least. */
export const fixedModels: Readonly<Record<VendorName, string>> = {
  gemini: "veo-fixed",
  dashscope: "wan-fixed",
  fal: "fal-ai/fixed",
  replicate: "labs/fixed",
};

/**
 * Makes a vendor return one video for any request. The video is at the address, and nothing else is
 * reported about it.
 */
export function makeFilm(
  vendor: NativeVendorServer,
  name: VendorName,
  { id, url }: { readonly id: string; readonly url: string },
): void {
  vendor.answer((asked) => ({ body: JSON.stringify(answers[name](asked, { id, url })) }));
}

type Answer = (asked: AskedVendor, film: { readonly id: string; readonly url: string }) => object;

const answers: Readonly<Record<VendorName, Answer>> = {
  gemini: ({ method }, { id, url }) => {
    const name = `models/veo/operations/${id}`;
    if (method === "POST") return { name };
    const generateVideoResponse = { generatedSamples: [{ video: { uri: url } }] };
    return { name, done: true, response: { generateVideoResponse } };
  },
  dashscope: ({ method }, { id, url }) =>
    method === "POST"
      ? { output: { task_id: id, task_status: "PENDING" }, request_id: "x" }
      : { output: { task_id: id, task_status: "SUCCEEDED", video_url: url }, request_id: "x" },
  fal: ({ method, url: path }, { id, url }) => {
    if (method === "POST") return { request_id: id, status: "IN_QUEUE" };
    return path.includes("/status")
      ? { request_id: id, status: "COMPLETED" }
      : { video: { url, content_type: "video/mp4" } };
  },
  replicate: (_, { id, url }) => ({ id, status: "succeeded", output: url, urls: {} }),
};

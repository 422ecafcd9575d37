/** Replicate's predictions, from its client's source and its documents. */
import type { JsonObject } from "@bufbuild/protobuf";
import {
  type Rule,
  type SimulatedVendor,
  startVendor,
  type TaskAnswer,
  wrongMember,
} from "./simulated.ts";

/** The accepted secret. */
export const replicateSecret = "r8_operators_own";

const fluxInput: Readonly<Record<string, Rule>> = {
  prompt: "string",
  aspect_ratio: ["1:1", "16:9"],
  num_outputs: [1, 2, 3, 4],
  num_inference_steps: "integer",
  output_format: ["png", "jpg", "webp"],
  seed: "integer",
  go_fast: "object",
  image: "string",
};
const filmInput: Readonly<Record<string, Rule>> = {
  prompt: "string",
  duration: [5, 10],
  image: "string",
  aspect_ratio: "string",
};
const speechInput: Readonly<Record<string, Rule>> = {
  text: "string",
  voice: "string",
  speed: "number",
  emotion: ["happy", "sad"],
};

/** An error in its words. */
export function replicateError(status: number, detail: string, about: JsonObject = {}): TaskAnswer {
  return { status, body: { title: "Error", detail, status, ...about } };
}

/** A prediction with another fate. */
export function prediction(id: string, changes: JsonObject): TaskAnswer {
  const urls = { get: `https://api.replicate.com/v1/predictions/${id}` };
  const body = {
    id,
    input: {},
    output: null,
    logs: "",
    error: null,
    metrics: {},
    urls,
    ...changes,
  };
  return { status: 200, body };
}

/** Starts it. A prediction is done at the second look. */
export function startReplicate(): Promise<SimulatedVendor> {
  const looks = new Map<string, number>();
  const spoken = new Set<string>();
  const statuses = new Map<string, string>();
  let count = 0;
  const create = (json: JsonObject, rules: Readonly<Record<string, Rule>>): TaskAnswer => {
    const refused = refusal(json, rules);
    if (refused !== undefined) return refused;
    count += 1;
    const id = `p${count}rm0czn`;
    looks.set(id, 0);
    if (rules === speechInput) spoken.add(id);
    return { ...prediction(id, { status: "starting" }), status: 201, isWork: true };
  };
  return startVendor(({ method, url, headers, json }) => {
    if (headers.authorization !== `Bearer ${replicateSecret}`) {
      return replicateError(401, "You did not pass a valid authentication token");
    }
    const rules = inputs.get(url);
    if (method === "POST" && rules !== undefined && json !== undefined) return create(json, rules);
    if (method === "POST" && url === "/v1/predictions" && json !== undefined) {
      const { version, ...rest } = json;
      if (version === "5c7d5dc6") return create(rest, fluxInput);
      const about = { title: "Invalid version or not permitted" };
      return replicateError(422, "The specified version does not exist", about);
    }
    const [, id = "", cancel] = /^\/v1\/predictions\/(\w+)(\/cancel)?$/.exec(url) ?? [];
    const seen = looks.get(id);
    if (seen === undefined)
      return replicateError(404, "The requested resource could not be found.");
    if (cancel !== undefined && method === "POST") {
      if (seen < 2) statuses.set(id, "canceled");
      return prediction(id, { status: statuses.get(id) ?? "succeeded", output: null });
    }
    if (method !== "GET") return replicateError(405, "Method not allowed");
    looks.set(id, seen + 1);
    if (statuses.get(id) === "canceled") return prediction(id, { status: "canceled" });
    const logs = "Using seed: 1\n 10%|█         | 1/10\r 40%|████      | 4/10 [00:01<00:02]\n";
    if (seen < 1) return prediction(id, { status: "processing", logs });
    const output = spoken.has(id)
      ? "https://replicate.delivery/a/speech.wav"
      : ["https://replicate.delivery/a/out-0.webp", "https://replicate.delivery/out-1.mp4"];
    return prediction(id, { status: "succeeded", output, logs });
  });
}

const inputs: ReadonlyMap<string, Readonly<Record<string, Rule>>> = new Map([
  ["/v1/models/black-forest-labs/flux-schnell/predictions", fluxInput],
  ["/v1/models/minimax/video-01/predictions", filmInput],
  ["/v1/models/minimax/speech-02/predictions", speechInput],
]);

function refusal(json: JsonObject, rules: Readonly<Record<string, Rule>>): TaskAnswer | undefined {
  const members = { input: "object", webhook: "string", webhook_events_filter: "object" } as const;
  const input = (json["input"] ?? {}) as JsonObject;
  const wrong = wrongMember(json, members) ?? wrongMember(input, rules);
  if (wrong === undefined) return undefined;
  const about = { title: "Input validation failed", invalid_fields: [{ field: wrong.name }] };
  return replicateError(422, `- input.${wrong.name} is not valid`, about);
}

/** OpenAI's pictures and speech, from its SDK's types and its documents. */
import type { JsonObject } from "@bufbuild/protobuf";
import {
  type Rule,
  type SimulatedVendor,
  startVendor,
  type TaskAnswer,
  type TaskArrived,
  textIn,
  wrongMember,
} from "./simulated.ts";

/** The accepted secret. */
export const openaiSecret = "sk-operators-own-openai";

/** The generated image, which is not decoded. */
export const openaiPicture = Buffer.from("89504e470d0a1a0a", "hex");

const imageRules: Readonly<Record<string, Rule>> = {
  model: ["gpt-image-2"],
  prompt: "string",
  n: "integer",
  size: "string",
  quality: ["low", "medium", "high", "xhigh", "max", "auto"],
  output_format: ["png", "jpeg", "webp"],
  background: ["transparent", "opaque", "auto"],
  moderation: ["low", "auto"],
  output_compression: "integer",
};

const speechRules: Readonly<Record<string, Rule>> = {
  model: ["gpt-4o-mini-tts"],
  input: "string",
  voice: ["alloy", "ash", "nova"],
  response_format: ["mp3", "opus", "aac", "flac", "wav", "pcm"],
  speed: "number",
  instructions: "string",
};

/** An error in its words. */
export function openaiError(
  status: number,
  message: string,
  code: string | null = null,
): TaskAnswer {
  const type = "invalid_request_error";
  return { status, body: { error: { message, type, param: null, code } } };
}

/** Starts it. */
export function startOpenai(): Promise<SimulatedVendor> {
  return startVendor(answer);
}

function answer({ method, url, headers, json = {} }: TaskArrived): TaskAnswer {
  if (headers.authorization !== `Bearer ${openaiSecret}`) {
    return openaiError(401, "Incorrect API key provided", "invalid_api_key");
  }
  if (headers["content-type"] !== "application/json") return openaiError(415, "send JSON");
  if (method !== "POST") return openaiError(405, "method");
  if (url === "/v1/images/generations") return draw(json);
  return url === "/v1/audio/speech" ? speak(json) : openaiError(404, "Invalid URL");
}

function refusal(json: JsonObject, rules: Readonly<Record<string, Rule>>): TaskAnswer | undefined {
  const wrong = wrongMember(json, rules);
  if (wrong === undefined) return undefined;
  if (wrong.name === "model") {
    return openaiError(404, "The model does not exist", "model_not_found");
  }
  return wrong.isUnknown
    ? openaiError(400, `Unknown parameter: '${wrong.name}'.`, "unknown_parameter")
    : openaiError(400, `Invalid value: '${wrong.name}'.`, "invalid_value");
}

function draw(json: JsonObject): TaskAnswer {
  const wrong = refusal(json, imageRules);
  if (wrong !== undefined) return wrong;
  const { prompt, n = 1, size = "auto", output_format = "png" } = json;
  if (!/^(auto|\d+x\d+)$/.test(textIn(size))) return openaiError(400, "Invalid size");
  if (textIn(prompt).includes("forbidden")) {
    return openaiError(
      400,
      "Your request was rejected by the safety system.",
      "moderation_blocked",
    );
  }
  const data = Array.from({ length: Number(n) }, () => ({
    b64_json: openaiPicture.toString("base64"),
  }));
  const usage = { input_tokens: 12, output_tokens: 1_056, total_tokens: 1_068 };
  return { status: 200, body: { created: 1, data, output_format, usage }, isWork: true };
}

function speak(json: JsonObject): TaskAnswer {
  const wrong = refusal(json, speechRules);
  if (wrong !== undefined) return wrong;
  if (typeof json["voice"] !== "string") return openaiError(400, "voice is required");
  if (textIn(json["input"]).length > 4_096) return openaiError(400, "input is too long");
  if (textIn(json["input"]).includes("forbidden")) {
    return openaiError(400, "Your request was rejected.", "content_policy_violation");
  }
  // Three seconds, whatever is said.
  return { status: 200, type: "audio/pcm", body: Buffer.alloc(3 * 48_000), isWork: true };
}

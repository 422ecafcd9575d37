/** Gemini's pictures and Veo's films, from Google's documents. */
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
export const geminiSecret = "AIza-operators-own";

const base = "/v1beta/models";
const operation = "models/veo-3.1/operations/op1";

/** An error in Google's words. */
export function geminiError(
  code: number,
  status: string,
  message: string,
  reason?: string,
): TaskAnswer {
  const details =
    reason === undefined
      ? []
      : [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "googleapis.com" }];
  return { status: code, body: { error: { code, message, status, details } } };
}

/** Starts it. A film is done at the second look. */
export function startGemini(): Promise<SimulatedVendor> {
  let looks = 0;
  return startVendor((request, origin) => {
    const { method, url, headers, json } = request;
    if (headers["x-goog-api-key"] !== geminiSecret) {
      return geminiError(400, "INVALID_ARGUMENT", "API key not valid.", "API_KEY_INVALID");
    }
    if (headers.authorization !== undefined) return geminiError(401, "UNAUTHENTICATED", "two keys");
    if (method === "GET" && url === `/v1beta/${operation}`) {
      looks += 1;
      return looks < 2 ? { status: 200, body: { name: operation } } : filmed(origin);
    }
    if (method !== "POST" || json === undefined) return missing();
    if (url === `${base}/gemini-2.5-flash-image:generateContent`) return draw(request);
    if (url !== `${base}/veo-3.1:predictLongRunning`) return missing();
    looks = 0;
    return film(json);
  });
}

/** An operation that has ended well. */
export function filmed(origin: string): TaskAnswer {
  const uri = `${origin}/v1beta/files/abc:download?alt=media`;
  const elsewhere = "https://storage.example/film.mp4";
  const generatedSamples = [{ video: { uri } }, { video: { uri: elsewhere } }];
  return ended({ response: { generateVideoResponse: { generatedSamples } } });
}

/** An operation that has ended. */
export function ended(how: JsonObject): TaskAnswer {
  return { status: 200, body: { name: operation, done: true, ...how } };
}

function missing(): TaskAnswer {
  return geminiError(404, "NOT_FOUND", "models/x is not found for API version v1beta");
}

function invalid(name: string): TaskAnswer {
  const text = `Invalid JSON payload received. Unknown name "${name}": Cannot find field.`;
  return geminiError(400, "INVALID_ARGUMENT", text);
}

function wrongIn(parts: ReadonlyArray<readonly [unknown, Readonly<Record<string, Rule>>]>) {
  for (const [object, rules] of parts) {
    const wrong = wrongMember((object ?? {}) as JsonObject, rules);
    if (wrong !== undefined) return invalid(wrong.name);
  }
  return undefined;
}

interface DrawBody {
  readonly contents?: { readonly parts?: JsonObject[] }[];
  readonly generationConfig?: { readonly imageConfig?: JsonObject };
}

function draw({ json = {} }: TaskArrived): TaskAnswer {
  const { contents, generationConfig } = json as DrawBody;
  const parts = contents?.[0]?.parts ?? [];
  const wrong = wrongIn([
    [json, { contents: "object", generationConfig: "object" }],
    [generationConfig, { responseModalities: "object", imageConfig: "object", seed: "integer" }],
    [generationConfig?.imageConfig, { aspectRatio: "string", imageSize: ["1K", "2K", "4K"] }],
    ...parts.map((part) => [part, { text: "string", inlineData: "object" }] as const),
    ...parts.map((part) => [part["inlineData"], { mimeType: "string", data: "string" }] as const),
  ]);
  if (wrong !== undefined) return wrong;
  const isForbidden = textIn(parts[0]?.["text"]).includes("forbidden");
  if (isForbidden) {
    return {
      status: 200,
      body: { candidates: [{ finishReason: "IMAGE_SAFETY", content: {} }], usageMetadata: {} },
    };
  }
  const inlineData = { mimeType: "image/png", data: Buffer.from("picture").toString("base64") };
  const thought = { thought: true, inlineData: { ...inlineData, data: "ZHJhZnQ=" } };
  const content = { parts: [thought, { text: "Here it is." }, { inlineData }] };
  const usageMetadata = {
    promptTokenCount: 9,
    candidatesTokenCount: 1_290,
    thoughtsTokenCount: 10,
    totalTokenCount: 1_309,
  };
  const body = { candidates: [{ finishReason: "STOP", content }], usageMetadata };
  return { status: 200, body, isWork: true };
}

interface FilmBody {
  readonly instances?: JsonObject[];
  readonly parameters?: JsonObject;
}

function film(json: JsonObject): TaskAnswer {
  const { instances: [instance] = [], parameters } = json as FilmBody;
  const wrong = wrongIn([
    [json, { instances: "object", parameters: "object" }],
    [instance, { prompt: "string", image: "object" }],
    [instance?.["image"], { bytesBase64Encoded: "string", mimeType: "string" }],
    [
      parameters,
      {
        durationSeconds: [4, 5, 6, 7, 8],
        aspectRatio: ["16:9", "9:16"],
        resolution: ["720p", "1080p", "4k"],
        negativePrompt: "string",
        seed: "integer",
      },
    ],
  ]);
  if (wrong !== undefined) return wrong;
  if (textIn(instance?.["prompt"]).includes("forbidden")) {
    const text = "The prompt could not be submitted: it violates the usage guidelines.";
    return geminiError(400, "INVALID_ARGUMENT", text);
  }
  return { status: 200, body: { name: operation }, isWork: true };
}

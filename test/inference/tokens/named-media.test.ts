/** R-MON-12: media that a request names by URL hold the most that any vendor reads of them. */
import { expect, it } from "vitest";
import { RequestTokens } from "../../../src/inference/tokens/request-tokens.ts";
import { measureRequest } from "../../../src/inference/tokens/request-size.ts";
import type { TokenCounter } from "../../../src/inference/tokens/counter.ts";

const url = "https://example.com/x";
const body = (part: object) =>
  Buffer.from(JSON.stringify({ model: "m", messages: [{ role: "user", content: [part] }] }));

it.each([
  // 8 tiles of GPT-4o take 1,445 tokens, 2,576 pixels of Claude 4,784.
  ["an image", { type: "image_url", image_url: { url } }, 4_784],
  // Gemini reads 1,000 pages of 258 tokens.
  ["a document", { type: "file", file: { file_id: "x" } }, 258_000],
  ["a document of messages", { type: "document", source: { type: "url", url } }, 258_000],
  // Gemini reads up to 1,048,576 tokens: an hour of video takes more.
  ["a video", { type: "video_url", video_url: { url } }, 1_048_576],
  ["a video of Gemini", { fileData: { mimeType: "video/mp4", fileUri: url } }, 1_048_576],
  ["audio", { fileData: { mimeType: "audio/mp3", fileUri: url } }, 1_048_576],
])("%s by URL", (_, part, tokens) => {
  const json = body(part);
  const bodyOf = "fileData" in part ? gemini(part) : json;
  expect(measureRequest(bodyOf).bound).toBeGreaterThanOrEqual(tokens);
});

function gemini(part: object): Buffer {
  return Buffer.from(JSON.stringify({ contents: [{ role: "user", parts: [part] }] }));
}

it("is bounded by the context that the routes are configured with, if all of them are", () => {
  const sent = body({ type: "video_url", video_url: { url } });
  const text = { model: "m", stream: false, maxOutputTokens: 1, choices: 1, bytes: sent.length };
  const boundWith = (...contexts: readonly (number | undefined)[]): number => {
    const routes = contexts.map((maxContext) => ({
      route: { vendor: "v", model: "m", maxContext },
      dialect: undefined,
      detachedReadMs: 0,
    }));
    return new RequestTokens({ text, routes, body: [sent], counter: {} as TokenCounter }).bound;
  };
  expect(boundWith(32_000, 128_000)).toBe(128_000);
  expect(boundWith(32_000, undefined)).toBeGreaterThan(1_000_000);
});

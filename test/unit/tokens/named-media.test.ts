/** R-MON-12: media of a request hold the most that any vendor reads of them. */
import { describe, expect, it } from "vitest";
import { boundOf, RequestTokens, measureRequest } from "../../../src/tokens/request-tokens.ts";
import type { TokenCounter } from "../../../src/tokens/counter.ts";

const url = "https://example.com/x";
const body = (part: object) =>
  Buffer.from(JSON.stringify({ model: "m", messages: [{ role: "user", content: [part] }] }));

it.each([
  // Qwen takes 16,384 tokens in high resolution.
  ["an image", { type: "image_url", image_url: { url } }, 16_384],
  // A page can have any text.
  ["a document", { type: "file", file: { file_id: "x" } }, 1_048_576],
  ["a document of messages", { type: "document", source: { type: "url", url } }, 1_048_576],
  // Gemini reads up to 1,048,576 tokens: an hour of video takes more.
  ["a video", { type: "video_url", video_url: { url } }, 1_048_576],
  ["a video as a text", { type: "video_url", video_url: url }, 1_048_576],
  ["audio of chat", { type: "audio_url", audio_url: { url } }, 1_048_576],
  ["audio of chat as a text", { type: "input_audio", input_audio: url }, 1_048_576],
  ["a file of chat", { type: "file_url", file_url: { url } }, 1_048_576],
  ["a document as a text", { type: "document_url", document_url: url }, 1_048_576],
  ["a video of Gemini", { fileData: { mimeType: "video/mp4", fileUri: url } }, 1_048_576],
  ["audio", { fileData: { mimeType: "audio/mp3", fileUri: url } }, 1_048_576],
])("%s by URL holds the most that a model reads of it", (_, part, tokens) => {
  const json = body(part);
  const bodyOf = "fileData" in part ? gemini(part) : json;
  expect(boundOf(measureRequest(bodyOf))).toBeGreaterThanOrEqual(tokens);
});

function gemini(part: object): Buffer {
  return Buffer.from(JSON.stringify({ contents: [{ role: "user", parts: [part] }] }));
}

it("media is bounded by the context that the routes are configured with, if all of them are", () => {
  const sent = body({ type: "video_url", video_url: { url } });
  expect(tokensOf(sent, 32_000, 128_000).bound).toBe(128_000);
  expect(tokensOf(sent, 32_000, undefined).bound).toBeGreaterThan(1_000_000);
  expect(tokensOf(sent, 2_000_000).bound).toBe(2_000_000);
});

it("two media without a bound fill a context only once", () => {
  const video = { type: "video_url", video_url: { url } };
  const sent = Buffer.from(JSON.stringify({ messages: [{ content: [video, video] }] }));
  expect(tokensOf(sent, undefined).bound).toBe(1_048_576);
});

it("a limit of tokens per minute reserves what is usual for a document, not all that a model can read", () => {
  const sent = body({ type: "document", source: { type: "url", url } });
  const { expected, typical, bound } = tokensOf(sent, undefined);
  expect(expected).toBeGreaterThanOrEqual(typical);
  expect(expected).toBeLessThan(bound / 100);
});

function tokensOf(sent: Buffer, ...contexts: readonly (number | undefined)[]): RequestTokens {
  const text = { model: "m", stream: false, maxOutputTokens: 1, choices: 1, bytes: sent.length };
  const routes = contexts.map((maxContext) => ({
    route: { vendor: "v", model: "m", maxContext },
    dialect: undefined,
    detachedReadMs: 0,
  }));
  return new RequestTokens({ text, routes, body: [sent], counter: {} as TokenCounter });
}

describe("in base64", () => {
  /** A WAV of 16 bits and one channel. */
  const wav = (rate: number, dataBytes: number, { byteRate = rate * 2, format = 1 } = {}) => {
    const head = Buffer.alloc(44);
    head.write("RIFF\0\0\0\0WAVEfmt ", "latin1");
    head.writeUInt32LE(16, 16);
    head.writeUInt16LE(format, 20);
    head.writeUInt16LE(1, 22);
    head.writeUInt32LE(rate, 24);
    head.writeUInt32LE(byteRate, 28);
    head.writeUInt16LE(2, 32);
    head.writeUInt16LE(16, 34);
    head.write("data", 36, "latin1");
    head.writeUInt32LE(dataBytes, 40);
    return Buffer.concat([head, Buffer.alloc(dataBytes)]);
  };
  /** Frames of MP3 with these heads, each as long as it says. */
  const mp3 = (head: number, frameBytes: number, frames: number): Buffer => {
    const frame = Buffer.alloc(frameBytes);
    frame.writeUInt32BE(head);
    return Buffer.concat(Array.from({ length: frames }, () => frame));
  };
  /** 64 kbit/s at 24,000 samples a second: 192 bytes and 24 ms. */
  const speech = mp3(0xff_f3_84_c0, 192, 500);
  /** 8 kbit/s at 8,000 samples a second: 72 bytes and 72 ms, the lowest that there is. */
  const silence = mp3(0xff_e3_18_c0, 72, 500);
  const tag = Buffer.concat([Buffer.from("ID3\x04\0\0\0\0\0\x20", "latin1"), Buffer.alloc(32)]);
  const audio = (file: Buffer, format = "wav"): number => {
    const data = file.toString("base64");
    return boundOf(measureRequest(body({ type: "input_audio", input_audio: { data, format } })));
  };
  const second = 32;

  it.each([
    ["WAV of 10 s", wav(16_000, 320_000), 10],
    ["WAV of an hour in 20 kB", wav(2, 14_400), 3_600],
    ["MP3 of 12 s", speech, 12],
    ["MP3 of 12 s with a tag", Buffer.concat([tag, speech]), 12],
    ["MP3 of 36 s of silence in 36 kB", silence, 36],
  ])("base64 of %s holds its length, and little more", (_, file, seconds) => {
    expect(audio(file)).toBeGreaterThanOrEqual(seconds * second);
    expect(audio(file)).toBeLessThan(seconds * second + 100);
  });

  it.each([
    ["WAV that is compressed", wav(16_000, 3_200, { format: 17 })],
    ["WAV that contradicts itself", wav(1, 3_200, { byteRate: 192_000 })],
    ["FLAC, of which a frame of silence has 14 bytes", Buffer.from("fLaC\0\0\0\x22")],
    ["Ogg", Buffer.from("OggS\0\x02")],
    ["MP4", Buffer.from("\0\0\0\x18ftypM4A ")],
    ["what nobody knows", Buffer.from("\0\x01\x02\x03")],
  ])("base64 of %s holds all that a model can read", (_, file) => {
    expect(audio(file)).toBeGreaterThanOrEqual(1_048_576);
  });

  it("an MP3 with bytes that are no frames holds the most that frames can last in them", () => {
    const hidden = Buffer.alloc(18_000, 1);
    // 13 bytes for 72 ms.
    const seconds = Math.floor(18_000 / 13) * 0.072;
    for (const file of [
      Buffer.concat([speech, hidden]),
      Buffer.concat([Buffer.from("ID3\x04\0\0\0\x01\x0c\x46", "latin1"), hidden, speech]),
    ]) {
      expect(audio(file, "mp3")).toBeGreaterThanOrEqual(Math.floor((seconds + 12) * second));
    }
  });

  it("a recording between whose base64 other characters stand holds all that a model can read", () => {
    const data = speech.toString("base64");
    for (const odd of ["\n", " ", "-", "=", "\\"]) {
      const part = { data: `${data.slice(0, 400)}${odd}${data.slice(400)}`, format: "mp3" };
      const bound = boundOf(measureRequest(body({ type: "input_audio", input_audio: part })));
      expect(bound).toBeGreaterThanOrEqual(1_048_576);
    }
  });

  it.each([
    ["a PDF of any size", "application/pdf", "%PDF-1.7", 1_048_576],
    ["a PDF that is called a text", "text/plain", "\n\n%PDF-1.7", 1_048_576],
    ["an archive that is called a text", "text/plain", "PK\x03\x04", 1_048_576],
    ["a video", "video/mp4", "x".repeat(999), 1_048_576],
  ])("base64 of %s holds all that a model can read", (_, mimeType, content, tokens) => {
    const data = Buffer.from(content).toString("base64");
    expect(boundOf(measureRequest(gemini({ inlineData: { mimeType, data } })))).toBe(tokens);
  });

  it("a text holds one token for each of its bytes", () => {
    const data = Buffer.from("0".repeat(6_000)).toString("base64");
    const file = { file_data: `data:text/plain;base64,${data}` };
    for (const sent of [
      gemini({ inlineData: { mimeType: "text/plain", data } }),
      body({ type: "document", source: { type: "base64", media_type: "text/csv", data } }),
      body({ type: "file", file }),
    ]) {
      const bound = boundOf(measureRequest(sent));
      expect(bound).toBeGreaterThanOrEqual(6_000);
      expect(bound).toBeLessThan(6_150);
    }
  });
});

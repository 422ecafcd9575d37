/** Only demo: it does itself what vendors' models do. Embeddings, rerank and moderations; speech, the text of recordings,
 * and images from images, in OpenAI's form. */
import { createHash, randomUUID } from "node:crypto";
import { GatewayError } from "../../core/errors.ts";
import { embeddingsReply, readEmbeddings } from "../../dialect/operations/embeddings.ts";
import { isRecord, type JsonRecord, textAt } from "../../wire/json/value.ts";
import { audioSeconds } from "../media/length.ts";
import { bodyText, jsonReply } from "../operation-form.ts";
import { bufferedBody, type VendorReply } from "../reply.ts";
import type { VendorCall } from "../vendor.ts";
import { renderTune } from "./audio.ts";
import { renderImage } from "./image.ts";
import {
  DemoRequestError,
  flagField,
  flagMember,
  numberField,
  numberMember,
  readBody,
  refuse,
  requireKnown,
  requireModel,
} from "./request.ts";

const dimensionsDefault = 256;
const dimensionsMax = 3_072;

/** Makes embeddings: texts that share words and beginnings of words are near each other. @throws DemoRequestError */
export function embed(body: JsonRecord): JsonRecord {
  requireModel(body, ["embedding"]);
  requireKnown(body, new Set(["model", "input", "dimensions", "encoding_format", "user"]));
  numberMember(body, "dimensions", { least: 1, most: dimensionsMax, isWhole: true });
  const { texts, dimensions = dimensionsDefault, isBase64 } = readInputs(body);
  const vectors = texts.map((text) => vectorOf(text, dimensions));
  return embeddingsReply(body["model"], vectors, { isBase64, inputTokens: tokensOf(texts) });
}

function readInputs(body: JsonRecord): ReturnType<typeof readEmbeddings> {
  try {
    return readEmbeddings(body, decode);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { message, param } = error;
    throw new DemoRequestError(400, message, param === undefined ? {} : { param });
  }
}

/** Tokens as words: the tables of real tokenizers are too large for this. */
export function decode(tokens: readonly number[]): string {
  return tokens.map((token) => `token${token}`).join(" ");
}

/** A vector of length 1: each word and each of its beginnings adds to a dimension of its own. */
function vectorOf(text: string, dimensions: number): number[] {
  const vector = Array.from<number>({ length: dimensions }).fill(0);
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    for (const part of [word, word.slice(0, 4), word.slice(0, 2)]) {
      const hash = hashOf(part);
      const at = hash % dimensions;
      vector[at] = (vector[at] ?? 0) + (hash & 0x10000 ? 1 : -1) * part.length;
    }
  }
  const length = Math.hypot(...vector);
  // A text without words has a direction as well.
  if (length === 0) return vector.with(0, 1);
  return vector.map((value) => value / length);
}

/** A hash of a short text (FNV-1a). */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  }
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** A token is four bytes. */
export function tokensOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Math.max(1, Math.ceil(Buffer.byteLength(text) / 4)), 0);
}

/** Orders documents by how near they are to the query. @throws DemoRequestError */
export function rerank(body: JsonRecord): JsonRecord {
  const model = requireModel(body, ["rerank"]);
  const members =
    "model query documents top_n return_documents max_chunks_per_doc max_tokens_per_doc";
  requireKnown(body, new Set(members.split(" ")));
  const top = numberMember(body, "top_n", { least: 1, most: 2 ** 31 - 1, isWhole: true });
  const texts = (body["documents"] as readonly unknown[]).map((document) =>
    isRecord(document) ? textAt(document, "text") : String(document),
  );
  const query = String(body["query"]);
  const wanted = vectorOf(query, 1_024);
  const isReturned = flagMember(body, "return_documents");
  const results = texts
    .map((text, index) => ({ index, relevance_score: nearness(wanted, vectorOf(text, 1_024)) }))
    .toSorted((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, top)
    .map((result) =>
      isReturned ? { ...result, document: { text: texts[result.index] } } : result,
    );
  const total = tokensOf(texts) + tokensOf([query]) * texts.length;
  return {
    id: randomUUID(),
    model,
    results,
    usage: { prompt_tokens: total, total_tokens: total },
    meta: {
      api_version: { version: "2" },
      billed_units: { search_units: Math.ceil(texts.length / 100) },
    },
  };
}

/** The cosine of two vectors of length 1, from 0 to 1. */
function nearness(a: readonly number[], b: readonly number[]): number {
  const product = a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
  return Math.max(0, Math.min(1, Number(product.toFixed(6))));
}

/** OpenAI's categories, and the words by which the demo vendor knows some. */
const categories: ReadonlyMap<string, RegExp | undefined> = new Map([
  ["harassment", /\b(idiot|stupid|moron)s?\b/i],
  ["harassment/threatening", undefined],
  ["hate", /\bI hate\b/i],
  ["hate/threatening", undefined],
  ["illicit", undefined],
  ["illicit/violent", undefined],
  ["self-harm", /\b(hurt|kill) myself\b/i],
  ["self-harm/intent", undefined],
  ["self-harm/instructions", undefined],
  ["sexual", undefined],
  ["sexual/minors", undefined],
  ["violence", /\b(kill|murder|stab|shoot)\b/i],
  ["violence/graphic", undefined],
]);

/** Classifies texts by a few words. @throws DemoRequestError */
export function moderate(body: JsonRecord): JsonRecord {
  const model = requireModel(body, ["moderation"]);
  requireKnown(body, new Set(["model", "input"]));
  const { input } = body;
  // Parts of one message are one input; of them only texts are read.
  const isMessage = Array.isArray(input) && input.length > 0 && input.every(isModerationPart);
  const texts: unknown[] = isMessage
    ? [input.map((part) => textAt(part, "text")).join(" ")]
    : [input].flat();
  if (texts.length === 0 || !texts.every((text) => typeof text === "string")) {
    throw new DemoRequestError(400, "input: expected a text, or a list of texts", {
      param: "input",
    });
  }
  return {
    id: `modr-demo-${randomUUID()}`,
    model,
    results: texts.map((text) => verdict(text)),
  };
}

function isModerationPart(part: unknown): part is JsonRecord {
  if (!isRecord(part)) return false;
  return part["type"] === "text" ? typeof part["text"] === "string" : part["type"] === "image_url";
}

function verdict(text: string): JsonRecord {
  const found = [...categories].map(([name, words]) => [name, words?.test(text) === true] as const);
  const types = found.map(([name]) => [name, ["text"]] as const);
  return {
    flagged: found.some(([, isFound]) => isFound),
    categories: Object.fromEntries(found),
    category_scores: Object.fromEntries(
      found.map(([name, isFound]) => [name, isFound ? 0.97 : 0.0001]),
    ),
    category_applied_input_types: Object.fromEntries(types),
  };
}

/** Letters of a second of speech, as people speak. */
const charactersPerSecond = 12;

/** The longest tune, in seconds. */
const secondsMax = 60;

const speechMembers = new Set(
  "model input voice instructions response_format speed stream_format".split(" "),
);

/** Speaks a text: a tune of its length, that nobody will take for speech. @throws DemoRequestError */
export function speak(call: VendorCall): VendorReply {
  const body = readBody(bodyText(call));
  requireModel(body, ["audio"]);
  requireKnown(body, speechMembers);
  const { input, response_format: format = "wav", stream_format: streamed = "audio" } = body;
  if (format !== "wav" && format !== "pcm") {
    throw refuse(
      "response_format",
      'the demo vendor makes "wav" and "pcm"; send one of them, or none',
    );
  }
  if (streamed !== "audio") throw refuse("stream_format", 'the demo vendor has "audio" only');
  const speed = numberMember(body, "speed", { least: 0.25, most: 4 }) ?? 1;
  const text = String(input);
  const seconds = Math.ceil(text.length / charactersPerSecond / speed);
  const file = renderTune(digestOf(text), Math.min(secondsMax, Math.max(1, seconds)));
  const bytes = format === "wav" ? file : file.subarray(file.length - wavData(file));
  return fileReply(bytes, `audio/${format}`);
}

/** The bytes of the samples: the last chunk of a file that {@link renderTune} makes. */
function wavData(file: Buffer): number {
  return file.readUInt32LE(file.indexOf("data", 0, "latin1") + 4);
}

const translationFields = ["model", "file", "prompt", "response_format", "temperature"];
const transcriptionFields = new Set([
  ...translationFields,
  ...["language", "stream", "timestamp_granularities[]", "chunking_strategy"],
]);

/** Reads a recording as far as it can: its length. @throws DemoRequestError */
export async function transcribe(call: VendorCall): Promise<VendorReply> {
  return heard(await readForm(call), transcriptionFields);
}

/** The same, in English: its only language. @throws DemoRequestError */
export async function translate(call: VendorCall): Promise<VendorReply> {
  return heard(await readForm(call), new Set(translationFields));
}

async function heard(form: FormData, known: ReadonlySet<string>): Promise<VendorReply> {
  const fields: JsonRecord = Object.fromEntries(form);
  requireModel(fields, ["audio"]);
  requireKnown(fields, known);
  numberField(fields, "temperature", { least: 0, most: 1 });
  const file = form.get("file");
  if (!(file instanceof Blob)) throw refuse("file", "expected a recording");
  const bytes = Buffer.from(await file.arrayBuffer());
  const seconds = audioSeconds(bytes, "wav") ?? Math.ceil(bytes.length / 3_000);
  const text = `This is the demo model of UAS Gateway, not an AI. Your recording has ${bytes.length} bytes.`;
  const usage = { type: "duration", seconds: Math.ceil(seconds) };
  const format = form.get("response_format") ?? "json";
  const parts = timedParts(form, format);
  if (flagField(fields, "stream")) {
    const events = [
      ...text.split(/(?<=\s)/).map((delta) => ({ type: "transcript.text.delta", delta })),
      { type: "transcript.text.done", text, usage },
    ];
    const lines = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return fileReply(Buffer.from(lines), "text/event-stream");
  }
  const end = timeOf(seconds);
  switch (format) {
    case "json":
      return jsonReply({ text, usage });
    case "verbose_json":
      return jsonReply({
        ...{ task: "transcribe", language: "english", duration: seconds, text, usage },
        ...(parts.has("word") && { words: wordsOf(text, seconds) }),
        ...(parts.has("segment") && { segments: [segmentOf(text, seconds)] }),
      });
    case "text":
      return fileReply(Buffer.from(`${text}\n`), "text/plain; charset=utf-8");
    case "srt":
      return fileReply(
        Buffer.from(`1\n00:00:00,000 --> ${end.replace(".", ",")}\n${text}\n`),
        "text/plain; charset=utf-8",
      );
    case "vtt":
      return fileReply(
        Buffer.from(`WEBVTT\n\n00:00:00.000 --> ${end}\n${text}\n`),
        "text/plain; charset=utf-8",
      );
    default:
      throw refuse("response_format", "expected json, verbose_json, text, srt or vtt");
  }
}

/** The parts of a text whose times are wanted. @throws DemoRequestError */
function timedParts(form: FormData, format: unknown): ReadonlySet<string> {
  const name = "timestamp_granularities[]";
  const parts = form.getAll(name).map(String);
  if (parts.length === 0) return new Set(["segment"]);
  if (format !== "verbose_json") throw refuse(name, "send response_format=verbose_json with it");
  if (parts.every((part) => part === "word" || part === "segment")) return new Set(parts);
  throw refuse(name, "expected word or segment");
}

/** The words of a text, each as long as the others. */
function wordsOf(text: string, seconds: number): JsonRecord[] {
  const words = text.split(" ");
  const at = (index: number): number => Number(((index / words.length) * seconds).toFixed(3));
  return words.map((word, index) => ({ word, start: at(index), end: at(index + 1) }));
}

function segmentOf(text: string, seconds: number): JsonRecord {
  return {
    ...{ id: 0, seek: 0, start: 0, end: seconds, text, tokens: [], temperature: 0 },
    ...{ avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 },
  };
}

/** `01:02:03.500` */
function timeOf(seconds: number): string {
  return new Date(Math.min(seconds, 86_399) * 1_000).toISOString().slice(11, 23);
}

const sizes = ["256x256", "512x512", "1024x1024"];

/** Settings of real models that change nothing here are taken, too. */
const variationFields = ["model", "image", "image[]", "n", "size", "response_format", "user"];
const editFields = new Set([
  ...variationFields,
  ...["prompt", "images", "mask", "quality", "input_fidelity", "moderation", "stream"],
]);

/** Makes images from images and a text. @throws DemoRequestError */
export function editImages(call: VendorCall): Promise<VendorReply> {
  return redrawn(call, editFields);
}

/** Makes images from an image. @throws DemoRequestError */
export function varyImages(call: VendorCall): Promise<VendorReply> {
  return redrawn(call, new Set(variationFields));
}

/** The same files and prompt give the same images. */
async function redrawn(call: VendorCall, known: ReadonlySet<string>): Promise<VendorReply> {
  const form = call.contentType === undefined ? undefined : await readForm(call);
  const body: JsonRecord = form ? Object.fromEntries(form) : readBody(bodyText(call));
  requireModel(body, ["image"]);
  requireKnown(body, known);
  const { prompt = "", n = "1", size: sent = "auto", response_format: format = "url" } = body;
  if (flagField(body, "stream")) {
    throw refuse("stream", "the demo vendor does not stream images; leave it out");
  }
  const size = sent === "auto" ? "512x512" : String(sent);
  if (!sizes.includes(size)) throw refuse("size", `expected one of ${sizes.join(", ")}`);
  if (format !== "url" && format !== "b64_json") {
    throw refuse("response_format", "expected url or b64_json");
  }
  const hash = createHash("sha256").update(String(prompt));
  for (const value of form?.values() ?? [JSON.stringify(body["images"] ?? body["image"])]) {
    if (typeof value === "string") hash.update(value);
    else hash.update(Buffer.from(await value.arrayBuffer()));
  }
  const source = hash.digest().subarray(0, 16);
  const count = Math.min(10, Math.max(1, Number(n)));
  const side = Number.parseInt(size, 10);
  const images = await Promise.all(
    Array.from({ length: count }, (_none, index) => renderImage(source, { side, index })),
  );
  const data = images.map((image) => {
    const base64 = image.toString("base64");
    return format === "b64_json"
      ? { b64_json: base64 }
      : { url: `data:image/png;base64,${base64}` };
  });
  return jsonReply({ created: Math.floor(Date.now() / 1_000), data });
}

async function readForm(call: VendorCall): Promise<FormData> {
  const { body, contentType = "" } = call;
  if (!("open" in body)) throw new DemoRequestError(400, "expected a form");
  // Each piece is gone once the next one is asked for.
  const pieces = await Array.fromAsync(body.open(), (piece) => Buffer.from(piece));
  return new Response(Buffer.concat(pieces), {
    headers: { "content-type": contentType },
  }).formData();
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest().subarray(0, 16);
}

function fileReply(bytes: Buffer, contentType: string): VendorReply {
  return { status: 200, headers: { "content-type": contentType }, body: bufferedBody(bytes) };
}

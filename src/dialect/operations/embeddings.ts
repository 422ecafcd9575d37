/** Relays embeddings replies in OpenAI's form. */
import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../../gen/uas/type/v1/usage_pb.ts";
import { asBuffer } from "../../core/bytes.ts";
import { invalid } from "../../core/validation.ts";
import { readOutline } from "../body-members.ts";
import { relayJsonReply } from "../json-reply.ts";
import { sliceText } from "../../wire/json/outline.ts";
import { openBracket, skipSpace } from "../../wire/json/scan.ts";
import { countAt, isRecord, type JsonRecord, UnreadableReplyError } from "../../wire/json/value.ts";
import { classed } from "../features/member-class.ts";

/** The members of a request (R-TXT-13). */
export const embeddingsMembers = classed("free", "dimensions encoding_format input model user");

/** A reply after relaying. */
export interface RelayedEmbeddings {
  readonly body: Buffer;
  /** The vendor's usage; undefined if unusable. */
  readonly usage: Usage | undefined;
}

/** Options of {@link relayEmbeddings}. */
export interface EmbeddingsRelayOptions {
  /** Undefined means leave what the vendor wrote. */
  readonly publicModel: string | undefined;
  /** Whether the caller requested base64; called only if the vendor sent lists. Default: no. */
  readonly isBase64?: () => boolean;
}

/**
 * Reads usage out of a reply and restores the public model name in it; every other byte stays.
 * Lists of numbers are encoded only if the caller requested base64: OpenAI's SDK for Node.js
 * requests base64 by default, and up to version 6 it decodes a list to other numbers.
 *
 * @throws UnreadableReplyError
 */
export function relayEmbeddings(
  body: Buffer,
  { publicModel, isBase64 }: EmbeddingsRelayOptions,
): RelayedEmbeddings {
  const reply = relayJsonReply(body, publicModel);
  if (!reply.hasElements("data")) throw new UnreadableReplyError("a reply without embeddings");
  const usage = readInputUsage(reply.record("usage"));
  const isEncoded = isBase64 !== undefined && hasList(reply.body) && isBase64();
  return { body: (isEncoded && encoded(reply.body)) || reply.body, usage };
}

const embeddingKey = '"embedding"';

/**
 * Whether an embedding in a reply is a list. Vendors that send base64 as asked need no more than
 * this search.
 */
function hasList(body: Buffer): boolean {
  for (let at = body.indexOf(embeddingKey); at >= 0; at = body.indexOf(embeddingKey, at + 1)) {
    const colon = skipSpace(body, at + embeddingKey.length, body.length);
    const value = skipSpace(body, colon + 1, body.length);
    if (body[colon] === 0x3a && body[value] === openBracket) return true;
  }
  return false;
}

/** Whether a request is for vectors in base64. */
export function asksForBase64(body: Uint8Array): boolean {
  const bytes = asBuffer(body);
  const member = readOutline(bytes).members.findLast(({ key }) => key === "encoding_format");
  return member !== undefined && sliceText(bytes, member) === '"base64"';
}

/** A reply with its vectors in base64; undefined if they are. */
function encoded(body: Buffer): Buffer | undefined {
  const reply = JSON.parse(body.toString("utf8")) as JsonRecord;
  const { data } = reply;
  if (!Array.isArray(data) || !data.some((each) => isVector(each))) return undefined;
  const all = data.map((each: unknown) =>
    isVector(each) ? { ...each, embedding: float32Base64(each.embedding) } : each,
  );
  return Buffer.from(JSON.stringify({ ...reply, data: all }));
}

function isVector(each: unknown): each is { readonly embedding: readonly number[] } {
  if (!isRecord(each)) return false;
  const { embedding } = each;
  return Array.isArray(embedding) && embedding.every((value) => typeof value === "number");
}

/** A request for a vendor that creates embeddings in another form. */
export interface EmbeddingsRequest {
  /** The texts, in order; at least one. */
  readonly texts: readonly string[];
  /** The length of each vector; undefined for the model's own. */
  readonly dimensions: number | undefined;
  readonly isBase64: boolean;
}

/**
 * Reads a request for such a vendor.
 *
 * @param decode turns tokens into their text; absent if the vendor reads texts only
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export function readEmbeddings(
  { input, dimensions, encoding_format: format }: JsonRecord,
  decode?: (tokens: readonly number[]) => string,
): EmbeddingsRequest {
  if (format != null && format !== "float" && format !== "base64") {
    throw invalid("encoding_format", '"encoding_format" must be "float" or "base64"');
  }
  const isCount = Number.isInteger(dimensions) && Number(dimensions) >= 1;
  if (dimensions != null && !isCount) {
    throw invalid("dimensions", '"dimensions" must be a whole number from 1');
  }
  return {
    texts: inputsOf(input).map((each, index) => textOf(each, index, decode)),
    dimensions: dimensions == null ? undefined : Number(dimensions),
    isBase64: format === "base64",
  };
}

/** The inputs: one text or list of tokens, or a list of either. */
function inputsOf(input: unknown): readonly unknown[] {
  if (!Array.isArray(input)) return [input];
  if (input.length === 0) throw invalid("input", '"input" must have at least one text');
  return input.length > 0 && typeof input[0] === "number" ? [input] : input;
}

function textOf(
  input: unknown,
  index: number,
  decode: ((tokens: readonly number[]) => string) | undefined,
): string {
  if (typeof input === "string" && input !== "") return input;
  const isTokens = Array.isArray(input) && input.length > 0 && input.every(Number.isInteger);
  if (isTokens && decode !== undefined) return decode(input as readonly number[]);
  const param = index === 0 ? "input" : `input[${index}]`;
  if (isTokens) throw invalid("input", '"input": this model does not read tokens; send texts');
  throw invalid(param, `"${param}" must be a text that is not empty, or a list of such texts`);
}

/** A reply in OpenAI's form. @param inputTokens `undefined`: the vendor reports none */
export function embeddingsReply(
  model: unknown,
  vectors: readonly (readonly number[])[],
  {
    isBase64,
    inputTokens,
  }: { readonly isBase64: boolean; readonly inputTokens: number | undefined },
): JsonRecord {
  const data = vectors.map((vector, index) => {
    const embedding = isBase64 ? float32Base64(vector) : vector;
    return { object: "embedding", index, embedding };
  });
  const usage = { prompt_tokens: inputTokens, total_tokens: inputTokens };
  return { object: "list", data, model, ...(inputTokens !== undefined && { usage }) };
}

/** A vector as little-endian 32-bit floats in base64. */
function float32Base64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}

/**
 * The usage of a call that only reads, `undefined` if it is unusable. Some compatible vendors
 * report only the total, which is the input.
 */
export function readInputUsage(usage: JsonRecord | undefined): Usage | undefined {
  if (usage === undefined) return undefined;
  const inputTokens = countAt(usage, "prompt_tokens") || countAt(usage, "total_tokens");
  return inputTokens ? create(UsageSchema, { inputTokens }) : undefined;
}

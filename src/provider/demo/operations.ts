/** Only demo: it computes embeddings, ranks and moderations itself, from the words of the texts. */
import { randomUUID } from "node:crypto";
import { embeddingsReply, readEmbeddings } from "../../dialect/operations/embeddings.ts";
import { isRecord, type JsonRecord, textAt } from "../../wire/json/value.ts";
import { choiceMember, DemoRequestError, integerMember, textsIn, tokensOf } from "./request.ts";
import { decodeTokens } from "./text.ts";

/**
 * Makes embeddings: texts that share words are near each other. @throws GatewayError
 * INVALID_REQUEST; DemoRequestError
 */
export function embed(body: JsonRecord): JsonRecord {
  integerMember(body, "dimensions", { most: 3_072, otherwise: 256 });
  choiceMember(body, "encoding_format", ["float", "base64"]);
  const { texts, dimensions = 256, isBase64 } = readEmbeddings(body, decodeTokens);
  const vectors = texts.map((text) => vectorOf(text, dimensions));
  return embeddingsReply(body["model"], vectors, { isBase64, inputTokens: tokensOf(texts) });
}

/** A vector of length 1, to which each word adds in one dimension. */
function vectorOf(text: string, dimensions: number): number[] {
  const vector = Array.from<number>({ length: dimensions }).fill(0);
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    const at = hashOf(word) % dimensions;
    vector[at] = (vector[at] ?? 0) + word.length;
  }
  const length = Math.hypot(...vector);
  // A text without words has a direction as well.
  return length === 0 ? vector.with(0, 1) : vector.map((value) => value / length);
}

/** A hash of a short text (FNV-1a). */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

/** Orders documents by how near they are to the query. @throws DemoRequestError */
export function rerank(body: JsonRecord): JsonRecord {
  const texts = (body["documents"] as readonly unknown[]).map((document) =>
    isRecord(document) ? textAt(document, "text") : String(document),
  );
  const top = integerMember(body, "top_n", { most: 2 ** 31 - 1, otherwise: texts.length });
  const query = String(body["query"]);
  const wanted = vectorOf(query, 1_024);
  const scoreOf = (text: string): number => {
    const product = vectorOf(text, 1_024).reduce((sum, v, at) => sum + v * (wanted[at] ?? 0), 0);
    return Math.min(1, Number(product.toFixed(6)));
  };
  const isReturned = body["return_documents"] === true;
  const results = texts
    .map((text, index) => ({
      index,
      relevance_score: scoreOf(text),
      ...(isReturned && { document: { text } }),
    }))
    .toSorted((a, b) => b.relevance_score - a.relevance_score)
    .slice(0, top);
  const tokens = tokensOf(texts) + tokensOf([query]) * texts.length;
  const billed = { search_units: Math.ceil(texts.length / 100) };
  return {
    id: randomUUID(),
    model: body["model"],
    results,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    meta: { api_version: { version: "2" }, billed_units: billed },
  };
}

/** OpenAI's categories; the demo vendor finds only violence. */
const categories =
  `harassment harassment/threatening hate hate/threatening illicit illicit/violent self-harm
  self-harm/intent self-harm/instructions sexual sexual/minors violence violence/graphic`.split(
    /\s+/,
  );

/** Classifies texts by a few words. @throws DemoRequestError */
export function moderate({ model, input }: JsonRecord): JsonRecord {
  // Parts of one message are one input.
  const isPart = (part: unknown): boolean =>
    isRecord(part) && (typeof part["text"] === "string" || part["type"] === "image_url");
  const isMessage = Array.isArray(input) && input.length > 0 && input.every(isPart);
  const texts = isMessage ? [textsIn(input).join(" ")] : [input].flat();
  if (texts.length === 0 || !texts.every((text) => typeof text === "string")) {
    throw new DemoRequestError("input", "expected a text, or a list of texts");
  }
  const each = <Value>(valueOf: (category: string) => Value): Record<string, Value> =>
    Object.fromEntries(categories.map((category) => [category, valueOf(category)]));
  const results = texts.map((text) => {
    const flagged = /\b(kill|murder|stab|shoot)\b/i.test(text);
    const isFound = (category: string): boolean => flagged && category === "violence";
    return {
      flagged,
      categories: each(isFound),
      category_scores: each((category) => (isFound(category) ? 0.97 : 0.0001)),
      category_applied_input_types: each(() => ["text"]),
    };
  });
  return { id: `modr-demo-${randomUUID()}`, model, results };
}

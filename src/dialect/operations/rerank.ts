/**
 * Rerank in the forms of Cohere's API, Jina's API and vLLM: `{model, query, documents}` in,
 * `{results}` out. Requests are read if billing needs it, otherwise bodies keep their bytes.
 */
import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../../gen/uas/type/v1/usage_pb.ts";
import { asBuffer } from "../../core/bytes.ts";
import { invalid } from "../../core/validation.ts";
import {
  knownMembers,
  type Members,
  missing,
  type ModelBody,
  pickMembers,
  readCount,
  readModel,
  readOutline,
  readText,
  textOf,
  withModel,
} from "../body-members.ts";
import { errorBody } from "../codec.ts";
import type { Dialect } from "../dialect.ts";
import { readInputUsage } from "./embeddings.ts";
import { relayJsonReply } from "../json-reply.ts";
import { countAt, isRecord, recordAt, UnreadableReplyError } from "../../wire/json/value.ts";

/** The style of rerank routes. Cohere's SDKs read the message of an error at its top. */
export const rerank: Dialect = {
  word: "rerank",
  requestIdHeaders: ["x-request-id"],
  errorBody: (error) => ({ message: error.message, ...errorBody(error) }),
  replyBody() {
    throw new TypeError("rerank has no replies but those of vendors");
  },
};

/** A request to rank documents. */
export interface RerankBody extends ModelBody {
  /** The number of documents, at least 1. */
  readonly documents: number;
  /** The most searches that the vendor can count. */
  readonly searchesMax: number;
  /**
   * The bytes of the query for each document but the first: models read it again with every
   * document.
   */
  readonly repeatedBytes: number;
}

/** Documents of one search, as Cohere counts: a longer document is several. */
export const documentsPerSearch = 100;

/** Tokens of a document, its query included, that count as one. A token is at least a byte. */
const tokensPerChunk = 500;

/** The chunks of a document that Cohere reads, unless the request says otherwise. */
const chunksDefault = 10;

/**
 * Text bytes per token, so few that no usual text has fewer: Cohere cuts documents at this many
 * tokens of 4,096.
 */
const tokensPerDocumentDefault = 4_096;

const known = knownMembers([
  "model",
  "query",
  "documents",
  "top_n",
  "max_chunks_per_doc",
  "max_tokens_per_doc",
]);

/**
 * Reads a request.
 *
 * @param areTexts whether documents can only be texts, as in Cohere's second version
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export function readRerankBody(body: Uint8Array, areTexts: boolean): RerankBody {
  const bytes = asBuffer(body);
  const members = pickMembers(readOutline(bytes), known);
  const model = readModel(bytes, members, "model");
  const queryBytes = Buffer.byteLength(readText(bytes, members, "query"));
  const documents = readDocuments(bytes, members, areTexts);
  readCount(bytes, members, "top_n");
  const chunks = readCount(bytes, members, "max_chunks_per_doc") ?? chunksDefault;
  const tokens = readCount(bytes, members, "max_tokens_per_doc") ?? tokensPerDocumentDefault;
  const chunksMax = Math.max(chunks, Math.ceil(tokens / tokensPerChunk) + 1);
  let parts = 0;
  for (const size of documents) {
    parts += Math.min(chunksMax, Math.max(1, Math.ceil((size + queryBytes) / tokensPerChunk)));
  }
  return {
    ...withModel(bytes, members, model),
    documents: documents.length,
    searchesMax: Math.ceil(parts / documentsPerSearch),
    repeatedBytes: queryBytes * (documents.length - 1),
  };
}

/** The size of each document in bytes. */
function readDocuments(bytes: Buffer, members: Members, areTexts: boolean): readonly number[] {
  const json = textOf(bytes, members, "documents");
  if (json === undefined) throw missing(members, ["documents"], "send a list of texts");
  const documents: unknown = JSON.parse(json);
  if (!Array.isArray(documents) || documents.length === 0) {
    throw invalid("documents", '"documents" must be a list of at least one text');
  }
  return documents.map((document: unknown, index) => {
    if (typeof document === "string") return Buffer.byteLength(document);
    const param = `documents[${index}]`;
    if (areTexts) throw invalid(param, `"${param}" must be a text`);
    if (!isRecord(document)) {
      throw invalid(param, `"${param}" must be a text, or an object such as {"text": "…"}`);
    }
    return Buffer.byteLength(JSON.stringify(document));
  });
}

/** A reply after relaying. */
export interface RelayedRerank {
  readonly body: Buffer;
  /** Tokens; undefined if the vendor reports none. */
  readonly usage: Usage | undefined;
  /** Searches as the vendor counts them; undefined if it does not. */
  readonly searches: number | undefined;
}

/** Options of {@link relayRerank}. */
export interface RelayRerankOptions {
  /** Undefined means leave what the vendor wrote. */
  readonly publicModel: string | undefined;
  /** Whether the caller uses the second version of Cohere's API, whose clients require `meta`. */
  readonly isCohereV2: boolean;
}

/**
 * Reads the usage of a reply and restores the public model name in it. A reply in Jina's form gets
 * the `meta` that callers of Cohere's API require. Every other byte stays.
 *
 * @throws UnreadableReplyError if there are no results
 */
export function relayRerank(
  body: Buffer,
  { publicModel, isCohereV2 }: RelayRerankOptions,
): RelayedRerank {
  const reply = relayJsonReply(body, publicModel);
  if (!reply.hasArray("results")) throw new UnreadableReplyError("a rerank reply without results");
  const meta = reply.record("meta") ?? {};
  const billed = recordAt(meta, "billed_units") ?? {};
  const inputTokens =
    countAt(billed, "input_tokens") ?? countAt(recordAt(meta, "tokens") ?? {}, "input_tokens");
  const usage = inputTokens ? create(UsageSchema, { inputTokens }) : undefined;
  const read = readInputUsage(reply.record("usage")) ?? usage;
  // Cohere's own replies have neither.
  const isJinaForm = !reply.has("meta") && (reply.has("model") || reply.has("usage"));
  return {
    body: isCohereV2 && isJinaForm ? withMeta(reply.body, read) : reply.body,
    usage: read,
    searches: countAt(billed, "search_units"),
  };
}

function withMeta(body: Buffer, usage: Usage | undefined): Buffer {
  const end = body.lastIndexOf("}");
  const billed = usage === undefined ? {} : { billed_units: { input_tokens: usage.inputTokens } };
  const meta = JSON.stringify({ api_version: { version: "2" }, ...billed });
  return Buffer.concat([body.subarray(0, end), Buffer.from(`,"meta":${meta}`), body.subarray(end)]);
}

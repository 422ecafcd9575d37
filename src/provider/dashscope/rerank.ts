/**
 * Rerank of DashScope: `{input, parameters}` in, `{output: {results}, usage}` out. Models of the
 * family `qwen3-rerank` are at another address, which takes and sends the caller's form.
 */
import { invalid } from "../../core/validation.ts";
import { isRecord, recordAt, recordsAt, UnreadableReplyError } from "../../wire/json/value.ts";
import type { OperationRoute } from "../http-vendor.ts";

/** The transport of rerank requests. */
export const dashscopeRerank: OperationRoute = {
  path: ({ model }) =>
    isCompatible(model)
      ? "/compatible-api/v1/reranks"
      : "/api/v1/services/rerank/text-rerank/text-rerank",
  form: {
    request({ model, query, documents, top_n: topN, return_documents: returns, instruct }) {
      const texts = (documents as readonly unknown[]).map(textOf);
      if (isCompatible(String(model))) {
        return {
          model,
          query,
          documents: texts,
          ...(topN != null && { top_n: topN }),
          ...(instruct != null && { instruct }),
        };
      }
      return {
        model,
        input: { query, documents: texts },
        parameters: {
          ...(topN != null && { top_n: topN }),
          ...(instruct != null && { instruct }),
          return_documents: returns === true,
        },
      };
    },
    reply(reply, { model }) {
      if (isRecord(reply) && Array.isArray(reply["results"])) return reply;
      const output = isRecord(reply) ? recordAt(reply, "output") : undefined;
      if (!isRecord(reply) || !Array.isArray(output?.["results"])) {
        throw new UnreadableReplyError("a rerank reply without results");
      }
      const results = recordsAt(output, "results").map(
        ({ index, relevance_score: score, document }) => ({
          index,
          relevance_score: score,
          ...(isRecord(document) && { document }),
        }),
      );
      const { request_id: id, usage } = reply;
      return { id, model, results, ...(isRecord(usage) && { usage }) };
    },
  },
};

function isCompatible(model: string): boolean {
  return model.startsWith("qwen3-rerank");
}

function textOf(document: unknown, index: number): unknown {
  if (!isRecord(document)) return document;
  if (typeof document["text"] === "string") return document["text"];
  const param = `documents[${index}]`;
  throw invalid(
    param,
    `"${param}" must be a text, or an object with a "text": this model reads nothing else`,
  );
}

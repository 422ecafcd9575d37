/** Rerank of Text Embeddings Inference: `{query, texts}` in, a list of scores out. */
import { isRecord, UnreadableReplyError } from "../../wire/json/value.ts";
import type { OperationForm } from "../operation-form.ts";

/** The form of `/rerank`. It ranks all texts; the best are picked here. */
export const textsForm: OperationForm = {
  request({ query, documents }) {
    return { query, texts: textsOf(documents), truncate: true };
  },
  reply(reply, { model, documents, top_n: topN, return_documents: returns }) {
    if (!Array.isArray(reply) || !reply.every(isRecord)) {
      throw new UnreadableReplyError("a rerank reply without a list of scores");
    }
    const texts = textsOf(documents);
    const ranked = reply.toSorted((a, b) => Number(b["score"]) - Number(a["score"]));
    const results = ranked
      .slice(0, typeof topN === "number" ? topN : undefined)
      .map(({ index, score }) => ({
        index,
        relevance_score: score,
        ...(returns === true && { document: { text: texts[Number(index)] } }),
      }));
    return { model, results };
  },
};

/** The texts of a request: documents are texts, or objects with one. */
function textsOf(documents: unknown): readonly unknown[] {
  return (documents as readonly unknown[]).map((document) =>
    isRecord(document) ? (document["text"] ?? JSON.stringify(document)) : document,
  );
}

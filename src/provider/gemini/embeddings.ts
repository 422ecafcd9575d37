/** Embeddings of Gemini's API: a request with many texts, each in the form of a message. */
import { embeddingsReply, readEmbeddings } from "../../dialect/operations/embeddings.ts";
import {
  isRecord,
  protoCountAt,
  recordAt,
  recordsAt,
  UnreadableReplyError,
} from "../../wire/json/value.ts";
import type { OperationForm } from "../operation-form.ts";

/**
 * Returns the resource name of a model. Names such as `tunedModels/x` already contain their
 * collection.
 */
export function modelName(model: string): string {
  return model.includes("/") ? model : `models/${model}`;
}

/** The form of `batchEmbedContents`. */
export const geminiEmbeddings: OperationForm = {
  request(body, call) {
    const { texts, dimensions } = readEmbeddings(body);
    const model = modelName(call.model);
    return {
      requests: texts.map((text) => ({
        model,
        content: { parts: [{ text }] },
        ...(dimensions !== undefined && { outputDimensionality: dimensions }),
      })),
    };
  },
  reply(reply, asked) {
    if (!isRecord(reply)) throw new UnreadableReplyError("embeddings that are no object");
    const vectors = recordsAt(reply, "embeddings").map(({ values }) => numbers(values));
    const { texts, isBase64 } = readEmbeddings(asked);
    if (vectors.length !== texts.length) {
      throw new UnreadableReplyError(`${vectors.length} embeddings for ${texts.length} texts`);
    }
    const usage = recordAt(reply, "usageMetadata");
    const inputTokens = usage && protoCountAt(usage, "promptTokenCount");
    return embeddingsReply(asked["model"], vectors, { isBase64, inputTokens });
  },
};

function numbers(values: unknown): readonly number[] {
  const areNumbers = Array.isArray(values) && values.every((each) => typeof each === "number");
  if (areNumbers) return values;
  throw new UnreadableReplyError("an embedding without values");
}

import type { JsonObject } from "@bufbuild/protobuf";
import { pageSizeMax } from "../../config/limits.ts";
import { ErrorCode, GatewayError } from "../../errors.ts";

/**
 * The fields of a List request that the style's `limit`, `after_id` and `before_id` set.
 *
 * @throws GatewayError INVALID_REQUEST, naming the parameter
 */
export function messagesQueryFields(query: JsonObject): JsonObject {
  const { limit, after_id: afterId, before_id: beforeId } = query;
  const fields: JsonObject = {};
  if (limit !== undefined) fields["page_size"] = count(limit);
  if (afterId !== undefined) fields["after_key"] = text("after_id", afterId);
  if (beforeId !== undefined) fields["before_key"] = text("before_id", beforeId);
  if (afterId && beforeId) {
    throw invalid("after_id: send either after_id or before_id, not both", "after_id");
  }
  return fields;
}

function count(value: unknown): number {
  const size = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : 0;
  if (size >= 1 && size <= pageSizeMax) return size;
  throw invalid(`limit: send a whole number from 1 to ${pageSizeMax}`, "limit");
}

/** One that stands twice in the query is a list. */
function text(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw invalid(`${name}: send it once`, name);
}

function invalid(message: string, param: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param });
}

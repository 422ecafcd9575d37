import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ErrorCode, GatewayError } from "../../errors.ts";

/**
 * The fields that the parameters of a query set. SDKs write lists as `include[]`; a parameter that stands
 * twice is none of ours.
 *
 * @throws GatewayError INVALID_REQUEST, naming the parameter
 */
export function responsesQueryFields(query: JsonObject): JsonObject {
  const { limit, after, order, stream, starting_after: startingAfter } = query;
  if (stream !== undefined && stream !== "false" && stream !== "true") {
    const text = "stream: send true or false, once";
    throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "stream" });
  }
  const fields: JsonObject = { include: listOf(query["include[]"] ?? query["include"]) };
  if (limit !== undefined) fields["limit"] = count(limit);
  if (after !== undefined) fields["after"] = single("after", after);
  if (startingAfter !== undefined) fields["starting_after"] = eventNumber(startingAfter);
  if (order !== undefined) fields["order"] = single("order", order);
  return fields;
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

function count(value: JsonValue): number {
  if (typeof value === "string" && /^[1-9]\d{0,2}$/.test(value)) return Number(value);
  const text = "limit: send a whole number from 1 to 100";
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "limit" });
}

function eventNumber(value: JsonValue): number {
  if (typeof value === "string" && /^\d{1,9}$/.test(value)) return Number(value);
  const text = "starting_after: send the sequence_number of an event";
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "starting_after" });
}

function single(name: string, value: JsonValue): string {
  if (typeof value === "string") return value;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, `${name}: send it once`, { param: name });
}

/**
 * The headers `Deprecation` (RFC 9745) and `Sunset` (RFC 8594), from the announcements in the
 * contract.
 */
import type { DescMessage, JsonObject } from "@bufbuild/protobuf";
import type { Deprecation } from "../../../gen/uas/http/v1/http_pb.ts";
import { deprecationOf, routeDeprecation } from "../../contract/deprecation.ts";
import { isRecord, type JsonRecord } from "../../wire/json/value.ts";
import type { RestRoute } from "./route-table.ts";

/** Response headers. */
export type DeprecationHeaders = Readonly<Record<"deprecation" | "sunset", string>>;

/** The headers of every reply on a path. Undefined if the path stays. */
export function routeHeaders({ method, route }: RestRoute): DeprecationHeaders | undefined {
  const announced = routeDeprecation(method, route);
  return announced && headersOf(announced);
}

/**
 * Creates a function that finds the headers of a request with deprecated fields. If there are
 * several, the one that ends first counts.
 *
 * @returns undefined if the message has no such field, so that requests are not searched
 */
export function fieldHeaders(
  input: DescMessage,
): ((fields: JsonObject) => DeprecationHeaders | undefined) | undefined {
  if (!hasDeprecated(input, new Set())) return undefined;
  return (fields) => {
    const [first] = announcementsIn(input, fields).toSorted((one, other) =>
      one.sunsetDate < other.sunsetDate ? -1 : 1,
    );
    return first && headersOf(first);
  };
}

function headersOf({ sinceDate, sunsetDate }: Deprecation): DeprecationHeaders {
  return {
    deprecation: `@${Date.parse(sinceDate) / 1_000}`,
    sunset: new Date(sunsetDate).toUTCString(),
  };
}

function hasDeprecated(message: DescMessage, seen: Set<DescMessage>): boolean {
  if (seen.has(message)) return false;
  seen.add(message);
  return message.fields.some(
    (field) =>
      deprecationOf(field) !== undefined ||
      (field.message !== undefined && hasDeprecated(field.message, seen)),
  );
}

function announcementsIn(message: DescMessage, record: JsonRecord): Deprecation[] {
  return message.fields.flatMap((field) => {
    const value = record[field.jsonName] ?? record[field.name];
    if (value === undefined || value === null) return [];
    const own = deprecationOf(field);
    const { message: inner } = field;
    const items = inner === undefined ? [] : [value].flat().filter(isRecord);
    const nested = inner === undefined ? [] : items.flatMap((item) => announcementsIn(inner, item));
    return own === undefined ? nested : [own, ...nested];
  });
}

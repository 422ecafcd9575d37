/** Requirements of OpenAI's styles on a strict schema. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { isRecord, parseRecord } from "../../wire/json/value.ts";

/**
 * Whether every object of a schema names all its members, requires them and allows no others: the
 * only ones that vendors of chat completions and responses promise to follow; they refuse the
 * promise for others.
 */
export function isClosed(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isClosed);
  if (!isRecord(schema)) return true;
  const { properties, required, additionalProperties } = schema;
  if (schema["type"] === "object" || isRecord(properties)) {
    const names = isRecord(properties) ? Object.keys(properties) : [];
    const needed: readonly unknown[] = Array.isArray(required) ? required : [];
    if (additionalProperties !== false || names.some((name) => !needed.includes(name)))
      return false;
  }
  return Object.values(schema).every(isClosed);
}

/** Whether a schema of a request is to be followed exactly. */
export interface StrictSchema {
  /** The request's setting; undefined for the default of its style. */
  readonly strict: boolean | undefined;
  /** The schema. Empty if there is none. */
  readonly schemaJson: string;
  /** The style of the request; undefined for a typed caller. */
  readonly source: Dialect | undefined;
}

/**
 * Whether a vendor may enforce the schema strictly. In messages, strict schemas may have optional
 * members, which the vendor would refuse: the reply then only tries to follow the schema.
 */
export function strictFor({ strict, schemaJson, source }: StrictSchema, drop: () => void) {
  if (source !== Dialect.MESSAGES || strict !== true) return strict;
  if (schemaJson === "" || isClosed(parseRecord(schemaJson))) return strict;
  drop();
  return false;
}

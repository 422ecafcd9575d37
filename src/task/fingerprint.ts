/** What tells one submit from another under the same callback id. */
import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** What was asked for, without what is about the request itself. */
export interface Asked {
  readonly modelKey: string;
  readonly callbackUrl: string;
  /** Which parameter object it is. */
  readonly field: string;
  readonly params: JsonObject;
}

/** The SHA-256 of its canonical JSON: the order of members does not count, and absent is absent. */
export function fingerprint({ modelKey, callbackUrl, field, params }: Asked): Buffer {
  return createHash("sha256")
    .update(canonicalJson({ callbackUrl, modelKey, [field]: params }))
    .digest();
}

/** JSON with the members of each object in the order of their names. Nested as deep as a body may be. */
export function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.join(",")}}`;
}

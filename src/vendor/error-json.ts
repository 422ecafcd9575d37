/** Reads vendors' error bodies, which may be anything: a page of a proxy, or cut off. */

/** The body's `error` member where it is an object. Google's streams wrap the whole in a list of one. */
export function errorMember(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  return isObject(first) && isObject(first["error"]) ? first["error"] : undefined;
}

/** A member as text; empty where it is none. */
export function textMember(object: Readonly<Record<string, unknown>>, name: string): string {
  const value = object[name];
  return typeof value === "string" ? value : "";
}

/** The members of a list member that are objects. */
export function objectsMember(
  object: Readonly<Record<string, unknown>>,
  name: string,
): ReadonlyArray<Readonly<Record<string, unknown>>> {
  const value = object[name];
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

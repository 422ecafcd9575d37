/** A router constraint for routes that share a path and differ by a header or a query parameter. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { RestRoute } from "./route-table.ts";

/** Name of the constraint. The router uses it as an identifier in generated code. */
const name = "whenHeader";

/**
 * Derives the constraint value of a request: the first of the routes' headers that is present, or
 * the first parameter that is true. A path without such a route answers as if it were absent.
 */
export function whenHeaderStrategy(routes: readonly RestRoute[]) {
  const headerNames = [...new Set(routes.flatMap(({ whenHeader }) => whenHeader ?? []))];
  const parameters = [...new Set(routes.flatMap(({ whenQuery }) => whenQuery ?? []))];
  return {
    name,
    mustMatchWhenDerived: false,
    storage: createStorage,
    deriveConstraint: (request: IncomingMessage): string | undefined =>
      sentOf(headerNames, request.headers) ?? trueOf(parameters, request),
  };
}

/** The router's handlers by value. */
function createStorage<Handler>() {
  const handlers = new Map<unknown, Handler>();
  return {
    get: (header: unknown): Handler | null => handlers.get(header) ?? null,
    set: (header: unknown, handler: Handler): void => void handlers.set(header, handler),
  };
}

/** The router constraints of a route. */
export function constraintsOf(route: When): Record<string, string> {
  const condition = conditionOf(route);
  return condition === undefined ? {} : { [name]: condition };
}

type When = Pick<RestRoute, "whenHeader" | "whenQuery">;

/** The condition that distinguishes the route from others on its path; `undefined` for none. */
export function conditionOf({ whenHeader, whenQuery }: When): string | undefined {
  return whenHeader ?? (whenQuery === undefined ? undefined : `?${whenQuery}`);
}

/** The first of these parameters that is `true` in a GET. */
function trueOf(names: readonly string[], { method, url = "" }: IncomingMessage) {
  const at = url.indexOf("?");
  if (at < 0 || method !== "GET") return undefined;
  const query = new URLSearchParams(url.slice(at));
  const found = names.find((each) => query.get(each) === "true");
  return found && `?${found}`;
}

/** The first of these headers that the request has. */
export function sentOf(names: readonly string[], headers: IncomingHttpHeaders): string | undefined {
  for (const each of names) if (headers[each] !== undefined) return each;
  return undefined;
}

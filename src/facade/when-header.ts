/** Routes that share a path and are told apart by a header, or a parameter of the query: how the router does it. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { RestRoute } from "./route-table.ts";

/** The name of the constraint; it becomes an identifier in code that the router makes. */
const name = "whenHeader";

/**
 * Tells the router which of the headers that routes ask for a request has: the first one; or which of the
 * parameters. A path without a route of its own for that answers as it does without it.
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

/** The router's handlers by header. */
function createStorage<Handler>() {
  const handlers = new Map<unknown, Handler>();
  return {
    get: (header: unknown): Handler | null => handlers.get(header) ?? null,
    set: (header: unknown, handler: Handler): void => void handlers.set(header, handler),
  };
}

/** The router's constraints of a route. */
export function constraintsOf(route: When): Record<string, string> {
  const condition = conditionOf(route);
  return condition === undefined ? {} : { [name]: condition };
}

type When = Pick<RestRoute, "whenHeader" | "whenQuery">;

/** What tells the route from others of its path, as one text; `undefined`: nothing. */
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

/** The first of these headers that a request has. */
export function sentOf(names: readonly string[], headers: IncomingHttpHeaders): string | undefined {
  for (const each of names) if (headers[each] !== undefined) return each;
  return undefined;
}

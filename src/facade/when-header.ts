/** Routes that share a path and are told apart by a header: how the router does it. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { RestRoute } from "./route-table.ts";

/** The name of the constraint; it becomes an identifier in code that the router makes. */
const name = "whenHeader";

/**
 * Tells the router which of the headers that routes ask for a request has: the first one. A path without
 * a route of its own for that header answers as it does without it.
 */
export function whenHeaderStrategy(routes: readonly RestRoute[]) {
  const asked = [...new Set(routes.flatMap(({ whenHeader }) => whenHeader ?? []))];
  return {
    name,
    mustMatchWhenDerived: false,
    storage: createStorage,
    deriveConstraint: ({ headers }: IncomingMessage): string | undefined => sentOf(asked, headers),
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
export function constraintsOf({
  whenHeader,
}: Pick<RestRoute, "whenHeader">): Record<string, string> {
  return whenHeader === undefined ? {} : { [name]: whenHeader };
}

/** The first of these headers that a request has. */
export function sentOf(names: readonly string[], headers: IncomingHttpHeaders): string | undefined {
  for (const each of names) if (headers[each] !== undefined) return each;
  return undefined;
}

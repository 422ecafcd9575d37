import type { DescService } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { callerKey } from "./caller.ts";
import { requireActive } from "./caller-rules.ts";
import { type Clock, systemClock } from "./clock.ts";
import { requestCheck, type CheckRequest } from "./request-rules.ts";

/** A service of the contract and its implementation. */
export interface Service {
  readonly service: DescService;
  readonly implementation: ServiceImpl<DescService>;
}

/**
 * Pairs a service with its implementation; the types ensure that they fit. Requests of every edge
 * are checked against the rules of the contract before the implementation receives them. Methods
 * without rules, such as calls to models, keep their implementation unchanged, without added cost.
 *
 * @param clock decides which times are in the future. The system clock by default
 */
export function serve<S extends DescService>(
  service: S,
  implementation: ServiceImpl<S>,
  clock: Pick<Clock, "now"> = systemClock,
): Service {
  const methods = implementation as unknown as Readonly<Record<string, Method>>;
  const checked = service.methods.map((method) => [
    method.localName,
    withCheck(requestCheck(method, clock), methods[method.localName]),
  ]);
  return { service, implementation: Object.fromEntries(checked) as ServiceImpl<DescService> };
}

type Context = Pick<HandlerContext, "values">;
type Method = (request: object, context: Context) => unknown;

function withCheck(
  check: CheckRequest | undefined,
  method: Method | undefined,
): Method | undefined {
  if (check === undefined || method === undefined) return method;
  return (request, context) => {
    // A suspended account is refused for every request (R-KEY-4).
    const caller = context.values.get(callerKey);
    if (caller?.kind === "key") requireActive(caller);
    check(request);
    return method(request, context);
  };
}

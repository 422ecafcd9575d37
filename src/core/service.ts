import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { requireActive } from "./access.ts";
import { callerKey } from "./caller.ts";
import { requestCheck } from "./request-rules.ts";

/** A service of the contract and its implementation. */
export interface Service {
  readonly service: DescService;
  readonly implementation: ServiceImpl<DescService>;
}

/**
 * Pairs a service with its implementation; the types make sure that they fit. Requests are checked against the rules of
 * the contract before the implementation sees them, whichever edge they come from. Methods without rules, which calls
 * to models are, keep their implementation as it is: they pay nothing.
 */
export function serve<S extends DescService>(service: S, implementation: ServiceImpl<S>): Service {
  const methods = implementation as unknown as Readonly<Record<string, Method>>;
  const checked = service.methods.map((method) => [
    method.localName,
    withCheck(method, methods[method.localName]),
  ]);
  return { service, implementation: Object.fromEntries(checked) as ServiceImpl<DescService> };
}

type Context = Pick<HandlerContext, "values">;
type Method = (request: object, context: Context) => unknown;

function withCheck(description: DescMethod, method: Method | undefined): Method | undefined {
  const check = requestCheck(description);
  if (check === undefined || method === undefined) return method;
  return (request, context) => {
    // A suspended account is refused whatever its keys send (R-KEY-4).
    const caller = context.values.get(callerKey);
    if (caller?.kind === "key") requireActive(caller);
    check(request);
    return method(request, context);
  };
}

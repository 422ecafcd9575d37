/** Enforces the `access` option of each RPC, which is read once at start. */
import { type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { Access, access, permission } from "../../../gen/uas/http/v1/http_pb.ts";
import { type Caller, missingKey } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";

/**
 * Checks whether a caller may call a method.
 *
 * @param anonymous the error for anonymous callers. By default the missing key
 * @throws GatewayError UNAUTHENTICATED or ACCESS_DENIED
 */
export type CheckAccess = (
  method: DescMethod,
  caller: Caller,
  anonymous?: () => GatewayError,
) => void;

type Kinds = { readonly kinds: ReadonlySet<Caller["kind"]>; readonly needs: string };

type Rule = Kinds & {
  /** The permission that a service credential needs. Empty if none suffices. */
  readonly permission: string;
};

const anyone: Kinds = {
  kinds: new Set(["anonymous", "key", "session", "operator"] as const),
  needs: "",
};

const rules: ReadonlyMap<Access, Kinds> = new Map<Access, Kinds>([
  [Access.PUBLIC, anyone],
  [Access.KEY, { kinds: new Set(["key"] as const), needs: "an API key" }],
  [
    Access.SESSION,
    { kinds: new Set(["session", "operator"] as const), needs: "a console session or an operator" },
  ],
  [
    Access.CUSTOMER,
    {
      kinds: new Set(["key", "session", "operator"] as const),
      needs: "an API key, a console session or an operator",
    },
  ],
  [Access.OPERATOR, { kinds: new Set(["operator"] as const), needs: "an operator" }],
]);

/**
 * Reads the access options.
 *
 * @param standard services outside the contract that declare no access (health, reflection): open
 * to every client that can reach them. None by default
 * @throws if a method of `services` declares no access
 */
export function createAccessCheck(
  services: readonly DescService[],
  standard: readonly DescService[] = [],
): CheckAccess {
  const byMethod = new Map<DescMethod, Rule>();
  for (const method of standard.flatMap((service) => service.methods)) {
    byMethod.set(method, { ...anyone, permission: "" });
  }
  for (const method of services.flatMap((service) => service.methods)) {
    const rule = rules.get(getOption(method, access));
    if (rule === undefined)
      throw new Error(`${method.parent.typeName}.${method.name}: no access option`);
    byMethod.set(method, { ...rule, permission: getOption(method, permission) });
  }
  return (method, caller, anonymous = missingKey) => {
    const rule = byMethod.get(method);
    if (rule?.kinds.has(caller.kind)) return requirePermission(method, rule, caller);
    if (caller.kind === "anonymous") throw anonymous();
    throw new GatewayError(
      ErrorCode.ACCESS_DENIED,
      `Access denied: ${method.parent.typeName}.${method.name} needs ${rule?.needs ?? "no caller"}`,
    );
  };
}

/** Checks the permission of a service credential. @throws GatewayError ACCESS_DENIED */
function requirePermission(method: DescMethod, rule: Rule, caller: Caller): void {
  if (caller.kind !== "operator" || caller.permissions === undefined) return;
  if (rule.kinds === anyone.kinds || caller.permissions.has(rule.permission)) return;
  const needs =
    rule.permission === ""
      ? "is not available to service credentials: use the operator token or the command line"
      : `needs the permission ${rule.permission}: create a service credential that has it`;
  const text = `Access denied: ${method.parent.typeName}.${method.name} ${needs}`;
  throw new GatewayError(ErrorCode.ACCESS_DENIED, text);
}

/** Helpers of adapters for vendors that speak another style than the caller. */
import type { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { VendorDialect } from "../../dialect/dialect.ts";
import { vendorDialects } from "../../dialect/index.ts";
import { newExtra } from "../../dialect/turns/parts.ts";
import { ToolRestorer } from "../../dialect/tools/tool-restorer.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { type ReplyDecoder, withStops } from "../../dialect/stop-sequences.ts";
import type { VendorRefusal } from "../pipeline/adapter.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import { memberList, memberName } from "../../core/member-list.ts";

/** Finds the codec of a vendor's style. @throws Error if no vendor speaks it */
export function vendorDialect(dialect: Dialect | undefined): VendorDialect {
  const found = Object.entries(vendorDialects).find(([id]) => Number(id) === dialect)?.[1];
  if (found === undefined) throw new Error(`no vendor speaks dialect ${dialect}`);
  return found;
}

/**
 * The decoder of a vendor's replies to a request of another style, with the stop sequences that the
 * vendor does not get.
 */
export function replyDecoder(
  { dialect, detachedReadMs }: PlannedRoute,
  { stop }: Pick<Generation, "stop">,
): ReplyDecoder {
  // The same as after a disconnect: the vendor charges what is read to the end in any case
  // (R-MON-11).
  const isReadToEnd = detachedReadMs === Number.POSITIVE_INFINITY;
  return withStops(vendorDialect(dialect), { stop, isReadToEnd });
}

/** Creates the restorer of a reply's original tool names. */
export function toolRestorer(generation: Generation): ToolRestorer {
  return new ToolRestorer(generation.conversation?.tools ?? []);
}

/**
 * Refuses a strict request that the vendor's style cannot carry completely (R-TXT-2). @throws
 * GatewayError INVALID_REQUEST
 */
export function refuseDropped(dropped: readonly string[]): void {
  const [first] = dropped;
  if (first === undefined) return;
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `The model's vendor does not support: ${memberList(dropped)}. Leave it out, or send x-uas-strict: false to have it left out`,
    { param: memberName(first) },
  );
}

/**
 * The caller's name of a member. Clients choose some names, so inherited ones (`constructor`) must
 * not be found.
 */
export function memberNameOf(memberNames: Readonly<Record<string, string>>, name: string): string {
  return (Object.hasOwn(memberNames, name) ? memberNames[name] : undefined) ?? name;
}

/**
 * Converts an error of the vendor's codec, which names the invalid member as the contract does, to
 * the caller's name. The message includes the name, because not every style has a `param`.
 */
export function withMemberName(
  memberNames: Readonly<Record<string, string>>,
  error: unknown,
): unknown {
  if (!(error instanceof GatewayError) || error.param === undefined) return error;
  const param = memberNameOf(memberNames, error.param);
  if (param === error.param) return error;
  const { code, details, metadata, status } = error;
  return new GatewayError(code, `${param}: ${error.message}`, {
    param,
    details,
    metadata,
    status,
    cause: error,
  });
}

/**
 * Converts a vendor's refusal in another style than the caller's, with its status and message
 * (R-ERR-4).
 */
export function toVendorError(
  { status, body, error }: VendorRefusal,
  dialect: Dialect | undefined,
): GatewayError {
  const decoded = vendorDialect(dialect).decodeError(body);
  if (decoded === undefined) return error;
  const details = decoded.code === "" ? {} : { upstream_code: decoded.code };
  return new GatewayError(error.code, decoded.message || error.message, { status, details });
}

/**
 * Returns the parts of the request that the reply repeats. @param previous the continued response,
 * whose ID the reply repeats
 */
export function repeated(
  asked: Generation,
  { previous, reportCost }: { readonly previous: string | undefined; readonly reportCost: boolean },
): Generation {
  // The cost is a member of the usage.
  const generation = reportCost ? { ...asked, includeUsage: true } : asked;
  if (previous === undefined) return generation;
  const extra = newExtra("previous_response_id", JSON.stringify(previous));
  return { ...generation, extras: [...generation.extras, extra] };
}

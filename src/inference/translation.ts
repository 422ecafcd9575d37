/** What adapters share where a vendor is asked in another form than the caller's. */
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { Generation } from "../../gen/uas/inference/v1/generate_pb.ts";
import type { VendorDialect } from "../dialect/dialect.ts";
import { vendorDialects } from "../dialect/index.ts";
import { ToolRestorer } from "../dialect/tool-restorer.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { VendorRefusal } from "./pipeline/adapter.ts";
import { memberList, memberName } from "./headers.ts";

/** The codec of a style that vendors speak. */
export function vendorDialect(dialect: Dialect | undefined): VendorDialect {
  const found = Object.entries(vendorDialects).find(([id]) => Number(id) === dialect)?.[1];
  if (found === undefined) throw new Error(`no vendor speaks dialect ${dialect}`);
  return found;
}

/** Gives the tools of a reply their own names back. */
export function toolRestorer(generation: Generation): ToolRestorer {
  return new ToolRestorer(generation.conversation?.tools ?? []);
}

/** R-TXT-2: a strict caller wants all or nothing. @throws GatewayError INVALID_REQUEST */
export function refuseDropped(dropped: readonly string[]): void {
  const [first] = dropped;
  if (first === undefined) return;
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `The model's vendor cannot be told: ${memberList(dropped)}. Leave it out, or send x-uas-strict: false to have it left out`,
    { param: memberName(first) },
  );
}

/** As the caller's style calls a member. Some names are the client's own: `constructor` must not be found. */
export function memberNameOf(memberNames: Readonly<Record<string, string>>, name: string): string {
  return (Object.hasOwn(memberNames, name) ? memberNames[name] : undefined) ?? name;
}

/** Names the member at fault as the caller's style does; the vendor's codec knows it by the contract's name.
 * The message names it too: not all styles have a place for it beside the message. */
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

/** R-ERR-4: the vendor's refusal in another style than the caller's, with its status and message. */
export function toVendorError(
  { status, body, error }: VendorRefusal,
  dialect: Dialect | undefined,
): GatewayError {
  const decoded = vendorDialect(dialect).decodeError(body);
  if (decoded === undefined) return error;
  const details = decoded.code === "" ? {} : { upstream_code: decoded.code };
  return new GatewayError(error.code, decoded.message || error.message, { status, details });
}

/** The REST routes that the contract declares. */
import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { type Route, route } from "../../gen/uas/http/v1/http_pb.ts";
import { type DialectId, dialects } from "../dialect/index.ts";

/** One route: its path and its RPC. */
export interface RestRoute {
  readonly method: DescMethod;
  readonly route: Route;
  readonly dialect: DialectId;
  /** The path in the router's syntax: `/v1/models/*`. */
  readonly url: string;
  /** A header, in lower case, that must be present for this route; `undefined` for any request. */
  readonly whenHeader: string | undefined;
  /** A query parameter that must be `true` on a GET for this route; `undefined` for any request. */
  readonly whenQuery: string | undefined;
  /** The request field that receives the rest of the path; `undefined` for none. */
  readonly restField: string | undefined;
  /** The text after that field in the path; usually empty. */
  readonly restSuffix: string;
}

/** Lists the routes of `services`, in the contract's order. */
export function routeTable(services: readonly DescService[]): RestRoute[] {
  return services
    .flatMap((service) => service.methods)
    .filter((method) => hasOption(method, route))
    .flatMap((method) => getOption(method, route).map((each) => restRoute(method, each)));
}

/** A field for the rest of the path, and the text after it. */
const rest = /\{(\w+)=\*\*\}(\/[^{]*)?$/;

function restRoute(method: DescMethod, each: Route): RestRoute {
  if (!(each.dialect in dialects)) throw new Error(`${each.path}: no such dialect`);
  const [, restField, restSuffix = ""] = rest.exec(each.path) ?? [];
  const url = each.path.replace(rest, "*").replace(/\{(\w+)\}/g, ":$1");
  const whenHeader = each.whenHeader || undefined;
  const whenQuery = each.whenQuery || undefined;
  const dialect = each.dialect as DialectId;
  return { method, route: each, dialect, url, whenHeader, whenQuery, restField, restSuffix };
}

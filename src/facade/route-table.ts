/** The REST surface as the contract declares it. */
import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { type Route, route } from "../../gen/uas/http/v1/http_pb.ts";
import { type DialectId, dialects } from "../dialect/index.ts";

/** One route: where it is, and which RPC it reaches. */
export interface RestRoute {
  readonly method: DescMethod;
  readonly route: Route;
  readonly dialect: DialectId;
  /** The path in the router's form: `/v1/models/*`. */
  readonly url: string;
  /** The header whose presence makes a request one for this route, in lower case; `undefined`: any
   * request. */
  readonly whenHeader: string | undefined;
  /** The parameter that makes a GET one for this route where it is `true`; `undefined`: any request. */
  readonly whenQuery: string | undefined;
  /** The request field that takes the rest of the path; `undefined`: none. */
  readonly restField: string | undefined;
  /** What follows that field in the path; usually empty. */
  readonly restSuffix: string;
}

/** Lists the routes of `services`, in the contract's order. */
export function routeTable(services: readonly DescService[]): RestRoute[] {
  return services
    .flatMap((service) => service.methods)
    .filter((method) => hasOption(method, route))
    .flatMap((method) => getOption(method, route).map((each) => restRoute(method, each)));
}

/** A field that takes the rest of the path, and what follows it. */
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

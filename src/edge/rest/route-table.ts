/** The REST surface: the routes that the contract declares, and their aliases. */
import { clone, type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { type Route, RouteSchema, route } from "../../../gen/uas/http/v1/http_pb.ts";
import { type DialectId, dialects } from "../../dialect/index.ts";

/** A route: its path and its RPC. */
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
  /** The request field that receives the rest of the path; undefined if there is none. */
  readonly restField: string | undefined;
  /** The text after that field in the path; usually empty. */
  readonly restSuffix: string;
}

/**
 * Prefixes of paths that are also served under a second prefix. SDKs differ in whether they add
 * `/v1` to their base address: if both contain it, their requests arrive under `/v1/v1` (R-TXT-6).
 */
const prefixAliases = [{ prefix: "/v1/", alias: "/v1/v1/" }] as const;

/**
 * Lists the routes of `services` in the contract's order: the routes of each method, then their
 * aliases.
 */
export function routeTable(services: readonly DescService[]): RestRoute[] {
  return services
    .flatMap((service) => service.methods)
    .filter((method) => hasOption(method, route))
    .flatMap((method) => {
      const declared = getOption(method, route);
      const all = [...declared, ...declared.flatMap(aliasesOf)];
      return all.map((each) => restRoute(method, each));
    });
}

function aliasesOf(each: Route): Route[] {
  return prefixAliases
    .filter(({ prefix }) => each.path.startsWith(prefix))
    .map(({ prefix, alias }) => {
      const copy = clone(RouteSchema, each);
      copy.path = alias + each.path.slice(prefix.length);
      return copy;
    });
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

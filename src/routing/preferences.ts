/**
 * Routing preferences of a request: the header `x-uas-route`, or the body's member `provider`
 * (OpenRouter's form).
 */
import { priceAt } from "../config/price.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { parseUsd } from "../core/money.ts";
import type { PlannedRoute } from "./planned-route.ts";
import type { Targets } from "./targets.ts";

/** The routing preferences of one request. */
export interface RoutePreferences {
  /** Vendors, or routes as `vendor/model`: no others are used. Default: all. */
  readonly only?: readonly string[] | undefined;
  /** Vendors or routes that are not used. Default: none. */
  readonly ignore?: readonly string[] | undefined;
  /**
   * Vendors, or routes: these are used first, in this order. Default: the configuration decides.
   */
  readonly order?: readonly string[] | undefined;
  /** Sort order that replaces the configured one. */
  readonly sort?: "price" | "latency" | "throughput" | undefined;
  /** The highest prices, in nano-USD per 1,000,000 tokens. Default: any. */
  readonly maxPrice?: { readonly input?: bigint; readonly output?: bigint } | undefined;
  /**
   * Whether other routes than those of `order` or the first one, and other models, may be used.
   * Default true.
   */
  readonly allowFallbacks: boolean;
}

const keys = ["only", "ignore", "order", "sort", "max_price", "allow_fallbacks"] as const;
const sorts = ["price", "latency", "throughput"] as const;

/** The most names in a list. */
const namesMax = 100;

/**
 * Reads preferences.
 *
 * @param param the header or member, for messages
 * @throws GatewayError INVALID_REQUEST, naming what is wrong
 */
export function readPreferences(json: string, param: "x-uas-route" | "provider"): RoutePreferences {
  const read = new Reader(param);
  const given = read.object(parse(json), "");
  for (const key of Object.keys(given)) {
    if (keys.some((known) => known === key)) continue;
    throw read.invalid(`.${key.slice(0, 60)}`, `is not known; use ${keys.join(", ")}`);
  }
  const { sort, max_price: maxPrice, allow_fallbacks: allowFallbacks = true } = given;
  if (typeof allowFallbacks !== "boolean") {
    throw read.invalid(".allow_fallbacks", "must be true or false");
  }
  const known = sorts.find((each) => each === sort);
  if (sort != null && known === undefined) {
    throw read.invalid(".sort", `must be one of ${sorts.join(", ")}`);
  }
  return {
    only: read.names(given["only"], ".only"),
    ignore: read.names(given["ignore"], ".ignore"),
    order: read.names(given["order"], ".order"),
    sort: known,
    maxPrice: maxPrice == null ? undefined : read.maxPrice(maxPrice),
    allowFallbacks,
  };
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

type Members = Readonly<Record<string, unknown>>;

class Reader {
  readonly #param: string;

  constructor(param: string) {
    this.#param = param;
  }

  object(value: unknown, place: string): Members {
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isObject) return value as Members;
    throw this.invalid(place, `must be a JSON object such as {"only":["openai"]}`);
  }

  names(value: unknown, place: string): readonly string[] | undefined {
    if (value == null) return undefined;
    const isList = Array.isArray(value) && value.length <= namesMax;
    if (isList && value.every((each) => typeof each === "string")) return value;
    throw this.invalid(place, `must be a list of vendors, at most ${namesMax}`);
  }

  maxPrice(value: unknown): { readonly input?: bigint; readonly output?: bigint } {
    const given = this.object(value, ".max_price");
    const prices: { input?: bigint; output?: bigint } = {};
    const places = { prompt: "input", input: "input", completion: "output", output: "output" };
    for (const [name, price] of Object.entries(given)) {
      const place = new Map(Object.entries(places)).get(name);
      if (place === undefined) {
        throw this.invalid(
          `.max_price.${name.slice(0, 60)}`,
          "is not known; use prompt, completion",
        );
      }
      prices[place as "input"] = this.#price(price, `.max_price.${name}`);
    }
    return prices;
  }

  #price(value: unknown, place: string): bigint {
    const text = typeof value === "number" ? value.toFixed(9) : value;
    const price = typeof text === "string" ? parseUsd(text) : undefined;
    if (price !== undefined) return price;
    throw this.invalid(place, "must be US dollars per 1,000,000 tokens, such as 0.5");
  }

  invalid(place: string, problem: string): GatewayError {
    const param = `${this.#param}${place}`;
    return new GatewayError(ErrorCode.INVALID_REQUEST, `${param} ${problem}`, { param });
  }
}

/** Figures by which routes are ranked. */
interface RankFacts {
  readonly targets: Targets;
  /** Start of the call in milliseconds since 1970. The costs of that time apply. */
  readonly nowMs: number;
}

/**
 * The routes that the preferences allow, with priorities in their order.
 *
 * @throws GatewayError INVALID_REQUEST if they allow none
 */
export function applyPreferences(
  routes: readonly PlannedRoute[],
  preferences: RoutePreferences,
  facts: RankFacts,
): readonly PlannedRoute[] {
  const { only, ignore = [], order = [], sort, allowFallbacks } = preferences;
  const isListed = (planned: PlannedRoute, names: readonly string[]): boolean =>
    names.some((name) => isNamed(planned, name));
  const allowed = routes.filter(
    (planned) =>
      (only === undefined || isListed(planned, only)) &&
      !isListed(planned, ignore) &&
      (allowFallbacks || order.length === 0 || isListed(planned, order)),
  );
  if (allowed.length === 0) throw noneAllowed(routes);
  const rank = (planned: PlannedRoute): number => {
    const index = order.findIndex((name) => isNamed(planned, name));
    return index < 0 ? order.length : index;
  };
  const figure = figures[sort ?? "none"];
  const sorted =
    order.length === 0 && sort === undefined
      ? allowed
      : allowed
          .map((planned) => ({ planned, rank: rank(planned), figure: figure(planned, facts) }))
          .toSorted((a, b) => a.rank - b.rank || compare(a.figure, b.figure))
          .map(({ planned }, priority) => ({ ...planned, priority }));
  return sorted;
}

function isNamed({ route }: PlannedRoute, name: string): boolean {
  return name === route.vendor || name === `${route.vendor}/${route.model}`;
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Sort keys of routes, smallest first. Unknown figures come last. */
const figures: Readonly<
  Record<(typeof sorts)[number] | "none", (planned: PlannedRoute, facts: RankFacts) => number>
> = {
  none: ({ priority = 0 }) => priority,
  price: ({ route }, { nowMs }) => {
    if (route.costs === undefined) return Infinity;
    const price = priceAt(route.costs, nowMs);
    return Number((price.input ?? 0n) + (price.output ?? 0n));
  },
  latency: ({ route }, { targets }) => targets.of(route)?.pace.firstContentMs ?? Infinity,
  throughput: ({ route }, { targets }) => -(targets.of(route)?.pace.bytesPerSecond ?? -Infinity),
};

function noneAllowed(routes: readonly PlannedRoute[]): GatewayError {
  const vendors = [...new Set(routes.map(({ route }) => route.vendor))].join(", ");
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `No route of the model fits the routing preferences; its vendors are ${vendors}`,
    { param: "provider" },
  );
}

/** Routing preferences of a request. */
export interface RoutingWishes {
  readonly preferences?: RoutePreferences | undefined;
  /**
   * Models that take the call when all routes of its model fail, in order. Default: the configured
   * ones.
   */
  readonly models?: readonly string[] | undefined;
}

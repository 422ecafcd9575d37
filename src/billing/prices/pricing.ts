/**
 * The prices of calls, tasks and native jobs: quoted, held and charged by one implementation, and
 * stored so that each charge can be recomputed.
 */
import type {
  DatedPrice,
  ImageForm,
  ModelConfig,
  PriceConfig,
  RouteConfig,
} from "../../config/config.ts";
import { imagePriceOf, imagePricesOf, priceAt } from "../../config/price.ts";
import { servedPrice, tierPricesOf } from "../../config/tier-prices.ts";
import type { Clock } from "../../core/clock.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { amountNanosMax } from "../../core/money.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { type CallUsage, callCost, type HoldEstimate, holdAmount } from "./cost.ts";
import { type CanonicalPrice, canonicalPrice, parsePrice, priceVersion } from "./price-form.ts";

/** The current and earlier prices of this installation. */
export interface PriceBook {
  /** The version of a loaded price; computed once per price object. */
  version(price: PriceConfig): string;
  /**
   * Stores new prices of models, also future ones, with the time of the first load. Safe to repeat,
   * and on many nodes at once.
   *
   * @throws the driver's error if the database is unreachable.
   */
  load(models: Iterable<Pick<ModelConfig, "key" | "prices" | "listPrices">>): Promise<void>;
  /** When the model was loaded first, by any process; undefined means it never was. */
  firstLoad(model: string): Date | undefined;
  /** A stored price; `undefined` if there is no such version. */
  find(version: string): Promise<PriceConfig | undefined>;
  /**
   * The cost of a usage in nano-USD at a stored price, as {@link callCost} computes it; `undefined`
   * if there is no such version.
   */
  recompute(version: string, usage: CallUsage, discountBp?: number): Promise<bigint | undefined>;
}

/** Options of {@link createPriceBook}. */
export interface PriceBookOptions {
  /** The plain pool of the database. */
  readonly pool: Queryable;
}

/** A price that a model has twice is stored once, with the later start. */
const recordPriceSql =
  "insert into model_price as m (model, version, from_time) " +
  "select model, version, max(from_time) " +
  "from unnest($1::text[], $2::text[], $3::timestamptz[]) as n(model, version, from_time) " +
  "group by model, version " +
  "on conflict (model, version) do update set from_time = excluded.from_time " +
  "where m.from_time is distinct from excluded.from_time";

/** Creates the price book. */
export function createPriceBook({ pool }: PriceBookOptions): PriceBook {
  const versions = new WeakMap<PriceConfig, string>();
  const firstLoads = new Map<string, Date>();
  const version = (price: PriceConfig): string => {
    const known = versions.get(price) ?? priceVersion(price);
    versions.set(price, known);
    return known;
  };
  const find = async (wanted: string): Promise<PriceConfig | undefined> => {
    const { rows } = await pool.query<{ price: CanonicalPrice }>(
      "select price from price_version where version = $1",
      [wanted],
    );
    return rows[0] && parsePrice(rows[0].price);
  };
  return {
    version,
    find,
    firstLoad: (model) => firstLoads.get(model),
    async load(models) {
      const all = [...models];
      const list = all.flatMap(({ key, prices }) =>
        prices.map(({ fromMs, price }) => ({ key, fromMs, price, version: version(price) })),
      );
      // Calls are charged at one price of a table, or of a service tier.
      const others = all.flatMap(({ listPrices = new Map() }) => [...listPrices.values()].flat());
      const charged = [...list, ...others].flatMap(({ price }) => [
        price,
        ...imagePricesOf(price),
        ...tierPricesOf(price),
      ]);
      await pool.query(
        "insert into price_version (version, price) select * from unnest($1::text[], $2::jsonb[]) " +
          "on conflict (version) do nothing",
        [
          charged.map((price) => version(price)),
          charged.map((price) => JSON.stringify(canonicalPrice(price))),
        ],
      );
      await pool.query(recordPriceSql, [
        list.map(({ key }) => key),
        list.map((each) => each.version),
        list.map(({ fromMs }) => (Number.isFinite(fromMs) ? new Date(fromMs) : null)),
      ]);
      const { rows } = await pool.query<{ model: string; time: Date }>(
        "select model, min(load_time) as time from model_price where model = any($1) group by model",
        [list.map(({ key }) => key)],
      );
      for (const { model, time } of rows) firstLoads.set(model, time);
    },
    async recompute(wanted, usage, discountBp) {
      const price = await find(wanted);
      return price && callCost(price, usage, discountBp);
    },
  };
}

/** Computes what calls cost. `discountBp` is the account's discount in hundredths of a percent. */
export interface Pricing {
  /**
   * The price in force when a call starts, in milliseconds since 1970. The call is held, charged
   * and recorded at this price, whatever comes into force meanwhile.
   *
   * @param priceList the account's; empty or a list without this model: its usual price
   */
  priceAt(model: ModelConfig, startMs: number, priceList?: string): PriceConfig;
  /** The price in force now, for a task that is accepted now. */
  priceNow(model: ModelConfig, priceList?: string): PriceConfig;
  /** When the gateway first had a price for the model; undefined if unknown. */
  offeredSince(model: ModelConfig): Date | undefined;
  /** The version of a price, for the record of a call. */
  version(price: PriceConfig): string;
  /**
   * The amount to hold for the maximum usage of a call, in nano-USD, rounded up.
   * @throws GatewayError INVALID_REQUEST if no account can hold that much
   */
  hold(price: PriceConfig, usage: MaxUsage, discountBp: number): bigint;
  /** The amount to charge, in nano-USD, rounded down. */
  cost(price: PriceConfig, usage: CallUsage, discountBp: number): bigint;
  /**
   * Returns the price that the vendor of a route charges the operator for a call that started at
   * `startMs`, in nano-USD, rounded down; undefined if unknown. @param form of its images, default
   * the most expensive; and its service tier, default the usual one
   */
  vendorCost(
    route: RouteConfig,
    usage: CallUsage,
    startMs: number,
    form?: ServedForm,
  ): bigint | undefined;
}

/** Properties of a call besides its usage that decide the vendor's price. */
export interface ServedForm extends ImageForm {
  /** The service tier, in the vendor's word. Absent if not reported. */
  readonly serviceTier?: string | undefined;
}

/** The maximum usage of a call. Absent units count as 0. */
export type MaxUsage = Omit<HoldEstimate, "price" | "discountBp">;

/** The prices of a model for an account with a price list. @param priceList empty: it has none */
export function pricesFor(
  { prices, listPrices }: Pick<ModelConfig, "prices" | "listPrices">,
  priceList = "",
): readonly DatedPrice[] {
  return (priceList !== "" && listPrices?.get(priceList)) || prices;
}

/** Creates the pricing over the stored prices. @param clock decides which price is in force */
export function createPricing(prices: PriceBook, clock: Clock): Pricing {
  return {
    priceAt: (model, startMs, priceList) => priceAt(pricesFor(model, priceList), startMs),
    priceNow: (model, priceList) => priceAt(pricesFor(model, priceList), clock.now()),
    offeredSince: ({ key }) => prices.firstLoad(key),
    version: (price) => prices.version(price),
    hold: (price, usage, discountBp) =>
      requireHoldable(holdAmount({ price, ...usage, discountBp })),
    cost: callCost,
    vendorCost({ costs }, usage, startMs, form) {
      const whole = costs && priceAt(costs, startMs);
      const cost = whole && (servedPrice(whole, form?.serviceTier) ?? whole);
      return cost && callCost((form && imagePriceOf(cost, form)) ?? cost, usage);
    },
  };
}

/**
 * @throws GatewayError INVALID_REQUEST if no account can hold that much: the database's column ends
 * there
 */
function requireHoldable(amountNanos: bigint): bigint {
  if (amountNanos <= amountNanosMax) return amountNanos;
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "The request could cost more than any account can hold (9.2 billion USD): ask for less, with fewer output tokens for example",
  );
}

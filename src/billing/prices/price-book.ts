/** Stores every price that was ever charged, so that each charge can be recomputed. */
import type { ModelConfig, PriceConfig } from "../../config/config.ts";
import { callCost, type CallUsage } from "./price.ts";
import { type CanonicalPrice, canonicalPrice, parsePrice, priceVersion } from "./price-form.ts";
import type { Queryable } from "../../db/queryable.ts";

/** The current and earlier prices of this installation. */
export interface PriceBook {
  /** The version of a loaded price; computed once per price object. */
  version(price: PriceConfig): string;
  /**
   * Stores new prices of models, also future ones, with the time of the first load. Safe to repeat, and on many nodes at
   * once.
   *
   * @throws the driver's error where the database is away.
   */
  load(models: Iterable<Pick<ModelConfig, "key" | "prices">>): Promise<void>;
  /** When the model was loaded first, by any process; `undefined`: it never was. */
  firstLoad(model: string): Date | undefined;
  /** A stored price; `undefined` where there is no such version. */
  find(version: string): Promise<PriceConfig | undefined>;
  /** The cost of a usage in nano-USD at a stored price, as {@link callCost} computes it; `undefined` where there is no
   * such version. */
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
      const list = [...models].flatMap(({ key, prices }) =>
        prices.map(({ fromMs, price }) => ({ key, fromMs, price, version: version(price) })),
      );
      await pool.query(
        "insert into price_version (version, price) select * from unnest($1::text[], $2::jsonb[]) " +
          "on conflict (version) do nothing",
        [
          list.map((each) => each.version),
          list.map(({ price }) => JSON.stringify(canonicalPrice(price))),
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

/** Remembers every price that was ever charged, so that each charge can be computed again. */
import type { PriceConfig } from "../config/config.ts";
import { canonicalPrice, callCost, parsePrice, priceVersion, type TokenUsage } from "./price.ts";
import type { Queryable } from "./queryable.ts";

/** The prices of this installation, now and before. */
export interface PriceBook {
  /** The version of a price that this process has loaded; computed once per price object. */
  version(price: PriceConfig): string;
  /**
   * Stores prices that are new. Safe to repeat, and on many nodes at once.
   *
   * @throws the driver's error where the database is away.
   */
  load(prices: Iterable<PriceConfig>): Promise<void>;
  /** A stored price; `undefined` where there is no such version. */
  find(version: string): Promise<PriceConfig | undefined>;
  /** What a usage cost in nano-USD at a stored price; `undefined` where there is no such version. */
  recompute(version: string, usage: TokenUsage): Promise<bigint | undefined>;
}

/** What {@link createPriceBook} needs. */
export interface PriceBookOptions {
  /** The plain pool of the database. */
  readonly pool: Queryable;
}

/** Opens the price book. */
export function createPriceBook({ pool }: PriceBookOptions): PriceBook {
  const versions = new WeakMap<PriceConfig, string>();
  const version = (price: PriceConfig): string => {
    const known = versions.get(price) ?? priceVersion(price);
    versions.set(price, known);
    return known;
  };
  const find = async (wanted: string): Promise<PriceConfig | undefined> => {
    const { rows } = await pool.query<{ price: Record<string, string> }>(
      "select price from price_version where version = $1",
      [wanted],
    );
    return rows[0] && parsePrice(rows[0].price);
  };
  return {
    version,
    find,
    async load(prices) {
      const list = [...prices];
      await pool.query(
        "insert into price_version (version, price) select * from unnest($1::text[], $2::jsonb[]) " +
          "on conflict (version) do nothing",
        [list.map(version), list.map((price) => JSON.stringify(canonicalPrice(price)))],
      );
    },
    async recompute(wanted, usage) {
      const price = await find(wanted);
      return price && callCost(price, usage);
    },
  };
}

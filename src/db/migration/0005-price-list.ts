import type { Migration } from "../migrate.ts";

/** Adds the price list of an account. */
export const priceList0005: Migration = {
  name: "0005-price-list",
  compatibleFrom: "0001-baseline",
  statements: () => ["alter table account add price_list text not null default ''"],
};

import type { Migration } from "../migrate.ts";

/** Adds the days of call records and ledger entries that were exported as files. */
export const exportDays0007: Migration = {
  name: "0007-export-days",
  compatibleFrom: "0001-baseline",
  statements: () => [
    `create table export_day (
      data text not null,
      day date not null,
      lease uuid null,
      lease_until timestamptz null,
      ended_time timestamptz null,
      file text null,
      sha256 text null,
      rows bigint null,
      sum bigint null,
      vendor_sum bigint null,
      last_seq bigint null,
      is_final boolean not null default false,
      constraint export_day_pkey primary key (data, day)
    )`,
  ],
};

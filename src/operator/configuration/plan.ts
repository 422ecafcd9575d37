/**
 * Prices the recorded calls of a period again under a document. SQL: calls are read in the order of
 * their ids, newest first, in batches that leave time for calls in progress.
 */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Pool } from "pg";
import {
  type PlanGroup,
  PlanGroupSchema,
  PlanSumsSchema,
} from "../../../gen/uas/config/v1/config_pb.ts";
import {
  type PlanConfigResponse,
  PlanConfigResponseSchema,
} from "../../../gen/uas/config/v1/config_service_pb.ts";
import { type UsageColumns, usageOf } from "../../billing/calls/receipt-rpcs.ts";
import type { Config } from "../../config/config.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { money } from "../../core/money.ts";
import { firstId } from "../../db/partition.ts";
import { Repricing } from "./reprice.ts";

/** A period, in milliseconds since 1970. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
  /** The moment whose dated prices count; `Infinity`: the last ones. */
  readonly priceMs: number;
}

/** The most calls that are read. */
const callsMax = 1_000_000;

/** Calls of one batch: pricing them takes about 5 ms. */
const batchCalls = 500;

/** The most accounts of an answer. */
const accountsMax = 1_000;

interface Row extends UsageColumns {
  readonly id: string;
  readonly account_id: string;
  readonly model: string;
  readonly vendor: string;
  readonly price_version: string;
  readonly charged: boolean;
  readonly cost: string;
  readonly vendor_cost: string | null;
  readonly start_time: Date;
}

const batchSql = `select id, account_id, model, vendor, price_version, start_time,
    coalesce(charged, cost > 0) as charged, cost, vendor_cost, input_tokens, cached_input_tokens,
    cache_write_tokens, output_tokens, reasoning_tokens, images, second_micros, units
  from call where id >= $1 and id < $2 and model <> '' and (charged or cost > 0 or vendor_cost > 0)
  order by id desc limit ${batchCalls}`;

const accountsSql = "select id, name, discount_bp, price_list from account";

interface AccountRow {
  readonly id: string;
  readonly name: string;
  readonly discount_bp: number;
  readonly price_list: string;
}

/** Sums in nano-USD. */
class Sums {
  calls = 0n;
  before = 0n;
  after = 0n;
  costed = 0n;
  costedBefore = 0n;
  costedAfter = 0n;
  costBefore = 0n;
  costAfter = 0n;

  message() {
    return create(PlanSumsSchema, {
      calls: this.calls,
      revenueBefore: money(this.before),
      revenueAfter: money(this.after),
      vendorCostBefore: money(this.costBefore),
      vendorCostAfter: money(this.costAfter),
      costedCalls: this.costed,
      costedRevenueBefore: money(this.costedBefore),
      costedRevenueAfter: money(this.costedAfter),
    });
  }

  add(row: Row, { revenue, vendorCost }: NonNullable<ReturnType<Repricing["price"]>>): void {
    const paid = BigInt(row.cost);
    this.calls += 1n;
    this.before += paid;
    this.after += revenue;
    if (row.vendor_cost === null || vendorCost === undefined) return;
    this.costed += 1n;
    this.costedBefore += paid;
    this.costedAfter += revenue;
    this.costBefore += BigInt(row.vendor_cost);
    this.costAfter += vendorCost;
  }
}

/**
 * Prices the calls of a period again.
 *
 * @param before the configuration in force
 * @param after the configuration to price by
 */
export async function planConfig(
  pool: Pool,
  { before, after, period }: { before: Config; after: Config; period: Period },
): Promise<PlanConfigResponse> {
  const { rows: list } = await mapDatabaseLoss(pool.query<AccountRow>(accountsSql));
  const accounts = new Map(list.map((account) => [account.id, account]));
  const repricing = new Repricing(before, after, period.priceMs);
  const [total, models, owners] = [new Sums(), new Groups(), new Groups()];
  let [removed, oldestMs] = [0n, period.fromMs];
  for await (const row of callsOf(pool, period)) {
    const isBilled = row.vendor_cost === null || row.vendor_cost !== "0";
    const repriced = repricing.price({
      model: row.model,
      vendor: row.vendor,
      priceVersion: row.price_version,
      usage: usageOf(row),
      discountBp: accounts.get(row.account_id)?.discount_bp ?? 0,
      priceList: accounts.get(row.account_id)?.price_list ?? "",
      isCharged: row.charged,
      isBilled,
    });
    oldestMs = row.start_time.getTime();
    if (repriced === undefined) removed += 1n;
    else
      for (const sums of [total, models.of(row.model), owners.of(row.account_id)])
        sums.add(row, repriced);
  }
  return create(PlanConfigResponseSchema, {
    total: total.message(),
    models: models.messages((key) => after.models.get(key)?.name ?? key),
    accounts: owners.messages((id) => accounts.get(id)?.name ?? "").slice(0, accountsMax),
    removedCalls: removed,
    fromTime: timestampFromMs(total.calls + removed >= callsMax ? oldestMs : period.fromMs),
    toTime: timestampFromMs(period.toMs),
  });
}

/** The calls of a period that were charged or cost something, newest first. */
async function* callsOf(pool: Pool, { fromMs, toMs }: Period): AsyncIterable<Row> {
  const first = firstId(new Date(fromMs));
  let end = firstId(new Date(toMs));
  for (let read = 0; read < callsMax; ) {
    const { rows } = await mapDatabaseLoss(pool.query<Row>(batchSql, [first, end]));
    yield* rows;
    read += rows.length;
    const last = rows.at(-1);
    if (last === undefined || rows.length < batchCalls) return;
    end = last.id;
  }
}

/** Sums by key. */
class Groups {
  readonly #sums = new Map<string, Sums>();

  of(key: string): Sums {
    return this.#sums.getOrInsertComputed(key, () => new Sums());
  }

  /** The groups, the largest difference of revenue first. */
  messages(nameOf: (key: string) => string): PlanGroup[] {
    const change = ({ before, after }: Sums): bigint => after - before;
    const size = (sums: Sums): bigint => (change(sums) < 0n ? -change(sums) : change(sums));
    return [...this.#sums]
      .toSorted(([, a], [, b]) => (size(b) > size(a) ? 1 : size(b) < size(a) ? -1 : 0))
      .map(([key, sums]) =>
        create(PlanGroupSchema, { key, name: nameOf(key), sums: sums.message() }),
      );
  }
}

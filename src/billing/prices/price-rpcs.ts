/** The RPCs that show prices: configured ones, and earlier ones from the price book. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type BillingService,
  GetPriceResponseSchema,
  ListPricesResponseSchema,
} from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import {
  type ModelPrices,
  ModelPricesSchema,
  PriceState,
  type PriceVersion,
  PriceVersionSchema,
  type RouteCost,
  RouteCostSchema,
} from "../../../gen/uas/billing/v1/price_pb.ts";
import type { Config, DatedPrice, ModelConfig, PriceConfig } from "../../config/config.ts";
import { priceAt } from "../../config/price.ts";
import { type Caller, callerKey } from "../../core/caller.ts";
import { isOperator } from "../../core/caller-rules.ts";
import type { Clock } from "../../core/clock.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { cutPage, readPage } from "../../core/pagination.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import type { RowOf } from "../../db/row.ts";
import type { ModelPriceEntity } from "../entity.ts";
import { type CanonicalPrice, parsePrice, priceVersion } from "./price-form.ts";
import { priceMessage } from "../../config/price-message.ts";
import { pricesFor } from "./pricing.ts";

interface PriceRpcOptions {
  readonly pool: Queryable;
  readonly clock: Clock;
  /** Its models are read for each request. */
  readonly config: Pick<Config, "models">;
}

type StoredPriceRow = RowOf<
  typeof ModelPriceEntity,
  "model" | "version" | "from_time" | "load_time"
> & {
  readonly price: CanonicalPrice;
};

const storedPricesSql =
  "select m.model, m.version, m.from_time, m.load_time, v.price " +
  "from model_price m join price_version v on v.version = m.version where m.model = any($1) " +
  "order by m.model, coalesce(m.from_time, m.load_time), m.version";

/** Creates the price RPCs. */
export function createPriceRpcs({
  pool,
  clock,
  config,
}: PriceRpcOptions): Pick<ServiceImpl<typeof BillingService>, "getPrice" | "listPrices"> {
  const read = async (keys: readonly string[], context: HandlerContext): Promise<ModelPrices[]> => {
    const [{ rows }, priceList] = await Promise.all([
      pool.query<StoredPriceRow>(storedPricesSql, [keys]),
      priceListOf(pool, context.values.get(callerKey)),
    ]);
    const nowMs = clock.now();
    return keys.map((modelKey) => {
      const noted = rows.filter(({ model }) => model === modelKey);
      const model = config.models.get(modelKey);
      return create(ModelPricesSchema, {
        modelKey,
        versions: versionsOf(model, { noted, priceList, nowMs }),
        costs: isOperator(context) && model !== undefined ? costsOf(model, nowMs) : [],
      });
    });
  };
  return {
    async getPrice({ modelKey }, context) {
      // No model has such a key, and the database would not even compare it.
      const keys = modelKey.includes("\0") ? [] : [modelKey];
      const [prices] = await read(keys, context);
      if (prices === undefined || prices.versions.length === 0) throw noSuchModel(modelKey);
      return create(GetPriceResponseSchema, { prices });
    },

    async listPrices(request, context) {
      const page = readPage(request);
      const { after = "" } = page;
      const keys = [...config.models.keys()].filter((key) => key > after).toSorted();
      const { items, nextPageToken } = cutPage(page, keys, (key) => key);
      const prices = await read(items, context);
      return create(ListPricesResponseSchema, { prices, nextPageToken });
    },
  };
}

/** The price list of the caller's account; empty if it has none, and for operators. */
export async function priceListOf(pool: Queryable, caller: Caller | undefined): Promise<string> {
  if (caller?.kind === "key") return caller.priceList ?? "";
  if (caller?.kind !== "session") return "";
  const { rows } = await pool.query<{ price_list: string }>(
    "select price_list from account where id = $1",
    [caller.accountId],
  );
  return rows[0]?.price_list ?? "";
}

/**
 * The versions of a model: earlier ones first, then the configured ones with the time of their
 * first load.
 */
function versionsOf(
  model: ModelConfig | undefined,
  {
    noted,
    priceList,
    nowMs,
  }: {
    readonly noted: readonly StoredPriceRow[];
    readonly priceList: string;
    readonly nowMs: number;
  },
): PriceVersion[] {
  const configured = model === undefined ? [] : datedVersions(pricesFor(model, priceList), nowMs);
  const rows = new Map(noted.map((row) => [row.version, row]));
  for (const each of configured) {
    const row = rows.get(each.version);
    if (row !== undefined) each.loadTime = timestampFromDate(row.load_time);
  }
  const known = new Set(configured.map(({ version }) => version));
  // The stored versions are the usual prices.
  if (priceList !== "") return configured;
  const past = noted.filter(({ version }) => !known.has(version)).map(pastVersion);
  return [...past, ...configured];
}

function pastVersion(row: StoredPriceRow): PriceVersion {
  return versionMessage(parsePrice(row.price), {
    version: row.version,
    state: PriceState.PAST,
    fromTime: row.from_time === null ? undefined : timestampFromDate(row.from_time),
    loadTime: timestampFromDate(row.load_time),
  });
}

function costsOf({ routes }: ModelConfig, nowMs: number): RouteCost[] {
  return routes.flatMap(({ vendor, model, costs }) =>
    costs === undefined
      ? []
      : [create(RouteCostSchema, { vendor, model, versions: datedVersions(costs, nowMs) })],
  );
}

function noSuchModel(modelKey: string): GatewayError {
  const name = modelKey.length <= 100 ? modelKey : `${modelKey.slice(0, 100)}…`;
  return new GatewayError(
    ErrorCode.MODEL_NOT_FOUND,
    `The model \`${name}\` does not exist, and never had a price`,
    { param: "model_key" },
  );
}

/* Versions of prices as messages of the contract. */

/** The versions of a list of prices, in its order. */
function datedVersions(prices: readonly DatedPrice[], nowMs: number): PriceVersion[] {
  const current = priceAt(prices, nowMs);
  return prices.map(({ fromMs, price }) => {
    const later = fromMs > nowMs ? PriceState.FUTURE : PriceState.PAST;
    return versionMessage(price, {
      version: priceVersion(price),
      state: price === current ? PriceState.CURRENT : later,
      fromTime: Number.isFinite(fromMs) ? timestampFromDate(new Date(fromMs)) : undefined,
    });
  });
}

function versionMessage(
  price: PriceConfig,
  rest: MessageInitShape<typeof PriceVersionSchema>,
): PriceVersion {
  return create(PriceVersionSchema, { ...rest, price: priceMessage(price) });
}

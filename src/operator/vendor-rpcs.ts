/** The RPCs that show and test vendors and models. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Pool } from "pg";
import { CancelBilling, ModelTypeSchema } from "../../gen/uas/inference/v1/model_pb.ts";
import {
  type ConfiguredRouteSchema,
  UnlimitedModelSchema,
  VendorStateSchema,
} from "../../gen/uas/operator/v1/operator_pb.ts";
import type { OperatorService } from "../../gen/uas/operator/v1/operator_service_pb.ts";
import type { Config, ModelConfig, VendorConfig } from "../config/config.ts";
import { type Path, pathText } from "../config/document.ts";
import { lossWarnings } from "../config/loss-warnings.ts";
import { taskRunMs } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { actionValues, withAction } from "../observe/operator-log.ts";
import { cutPage, type PageRequest, readPage } from "../core/pagination.ts";
import type { RowOf } from "../db/row.ts";
import { firstId } from "../db/partition.ts";
import type { UnlimitedRouteEntity } from "../calls/entity.ts";
import { routePriorities } from "../routing/choice.ts";
import { unlimitedRouteChannel } from "../calls/unlimited-routes.ts";

/** The latest results of a vendor, as one process sees them. Times in milliseconds since 1970. */
export interface VendorHealth {
  readonly inFlight: number;
  readonly failure: { readonly atMs: number; readonly what: string } | undefined;
  readonly success: { readonly atMs: number; readonly durationMs: number } | undefined;
}

/** The result of a vendor test. */
export interface VendorTestResult {
  /** The generated text; undefined if the test failed. */
  readonly text: string | undefined;
  /** The error; empty: the test succeeded. */
  readonly error: string;
}

/** Options of {@link createVendorRpcs}. */
export interface VendorRpcOptions {
  readonly clock: Clock;
  readonly pool: Pick<Pool, "query">;
  readonly config: Config;
  /** The health of a vendor. */
  readonly vendorHealth: (vendor: string) => VendorHealth;
  /** Asks a vendor for a short text. Never rejects. */
  readonly test: (model: ModelConfig, vendor: string) => Promise<VendorTestResult>;
}

/** Recent calls: their maximum age in milliseconds, and the number of calls read. */
const recentMs = 15 * 60_000;
const recentRows = 10_000;

/** Characters shown of a test's text. */
const shownChars = 200;

interface RecentRow {
  readonly vendor: string;
  readonly calls: number;
  readonly failed: number;
  readonly first_ms: number | null;
  readonly failed_request_id: string | null;
}

/**
 * Statistics of the newest calls of all accounts. Ids begin with the time, so no index on time is
 * needed.
 */
const recentSql = `
  select vendor, count(*)::int as calls, count(*) filter (where ending = 4)::int as failed,
      percentile_cont(0.5) within group (order by first_byte_ms) filter (where first_byte_ms > 0)
        as first_ms,
      (array_agg(request_id order by id desc) filter (where ending = 4))[1] as failed_request_id
    from (select * from call where id >= $1 order by id desc limit ${recentRows}) newest
    where vendor <> '' group by vendor`;

type UnlimitedRow = RowOf<typeof UnlimitedRouteEntity>;

/** Marked by the calls that noticed it, see inference/unlimited-routes.ts. */
const unlimitedSql =
  "select vendor, model, call_id, limit_tokens, output_tokens, create_time from unlimited_route order by vendor, model";

const clearSql = `delete from unlimited_route where vendor = $1 and model = $2
  returning 'booked' as verdict, pg_notify('${unlimitedRouteChannel}', vendor)`;

type Rpcs = ServiceImpl<typeof OperatorService>;

/** Creates the RPCs for vendors and models. */
export function createVendorRpcs(
  options: VendorRpcOptions,
): Pick<Rpcs, "listVendors" | "testVendor" | "clearUnlimitedModel" | "listConfiguredModels"> {
  const { config, pool, clock } = options;
  const models = (): readonly ModelConfig[] => [...config.models.values()];
  const vendors = (): readonly VendorConfig[] =>
    [...config.vendors.values()].filter(({ name }) => servedBy(models(), name).length > 0);
  return {
    async listVendors(request) {
      const { items, nextPageToken } = pageOf(request, vendors(), ({ name }) => name);
      const { rows } = await mapDatabaseLoss(pool.query<RecentRow>(recentSql, [recentFrom(clock)]));
      const recent = new Map(rows.map((row) => [row.vendor, row]));
      const marked = await mapDatabaseLoss(pool.query<UnlimitedRow>(unlimitedSql));
      const states = items.map((vendor) => {
        const state = stateOf(vendor, options, recent.get(vendor.name));
        state.unlimitedModels = unlimitedModels(marked.rows, vendor.name);
        return state;
      });
      return { vendors: states, nextPageToken };
    },

    async testVendor({ vendor, modelKey }) {
      const model = modelToTest(servedBy(models(), vendor), { vendor, modelKey });
      const startMs = performance.now();
      const { text, error } = await options.test(model, vendor);
      return {
        ok: text !== undefined,
        modelKey: model.key,
        duration: durationFromMs(Math.round(performance.now() - startMs)),
        text: text?.slice(0, shownChars).toWellFormed() ?? "",
        error,
      };
    },

    async clearUnlimitedModel(request, { values }) {
      await clearUnlimitedModel(pool, request, values);
      return {};
    },

    async listConfiguredModels(request) {
      const { items, nextPageToken } = pageOf(request, models(), ({ key }) => key);
      return {
        models: items.map((model) => ({
          modelKey: model.key,
          name: model.name,
          type: typeWord(model),
          routes: configuredRoutes(model),
          fallbackModels: [...(model.fallbackModels ?? [])],
          maxOutputTokens: model.maxOutputTokens,
          line: lineOf(config, ["models", model.key]),
          deadline: durationFromMs(model.deadlineMs ?? taskRunMs),
          cancelBilling: model.cancelBilling ?? CancelBilling.NONE,
        })),
        nextPageToken,
        source: config.source,
        warnings: [...config.warnings, ...lossWarnings(config, clock.now())],
      };
    },
  };
}

/** The routes of a model, with the weight and priority by which calls are shared. */
function configuredRoutes({
  routes,
}: ModelConfig): MessageInitShape<typeof ConfiguredRouteSchema>[] {
  const priorities = routePriorities(routes);
  return routes.map(({ vendor, model, weight = 1, maxContext = 0 }, index) => ({
    vendor,
    model,
    weight,
    priority: priorities[index] ?? 0,
    maxContextTokens: maxContext,
  }));
}

/** @throws GatewayError NOT_FOUND if the model is not marked */
async function clearUnlimitedModel(
  pool: VendorRpcOptions["pool"],
  { vendor, model }: { readonly vendor: string; readonly model: string },
  values: Parameters<typeof actionValues>[0],
): Promise<void> {
  const action = { action: "vendor.clear-unlimited", subject: vendor, before: { model } };
  const { text, parameters } = withAction(clearSql, {
    parameters: [vendor, model],
    values: actionValues(values, action),
  });
  const { rows } = await mapDatabaseLoss(pool.query(text, parameters));
  if (rows.length > 0) return;
  const named = `${JSON.stringify(model.slice(0, 100))} of vendor ${JSON.stringify(vendor.slice(0, 100))}`;
  const message = `${named} is not marked: list the marks with "uas vendor unlimited"`;
  throw new GatewayError(ErrorCode.NOT_FOUND, message, { param: "model" });
}

function pageOf<Item>(
  request: PageRequest,
  all: readonly Item[],
  keyOf: (item: Item) => string,
): { readonly items: readonly Item[]; readonly nextPageToken: string } {
  const page = readPage(request);
  const { after } = page;
  const sorted = all.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  return cutPage(
    page,
    after === undefined ? sorted : sorted.filter((item) => keyOf(item) > after),
    keyOf,
  );
}

function servedBy(models: readonly ModelConfig[], vendor: string): readonly ModelConfig[] {
  return models.filter(({ routes }) => routes.some((route) => route.vendor === vendor));
}

/** The smallest id of a recent call. */
function recentFrom(clock: Clock): string {
  return firstId(new Date(clock.now() - recentMs));
}

function stateOf(
  { name, kind, baseUrl, apiKey, maxInFlight }: VendorConfig,
  { config, vendorHealth }: VendorRpcOptions,
  recent: RecentRow | undefined,
) {
  const { inFlight, failure, success } = vendorHealth(name);
  return create(VendorStateSchema, {
    vendor: name,
    kind,
    baseUrl,
    hasCredential: apiKey !== undefined,
    line: lineOf(config, ["vendors", name]),
    models: servedBy([...config.models.values()], name).map(({ key }) => key),
    inFlightLimit: maxInFlight ?? 0,
    inFlight,
    recent: {
      callCount: recent?.calls ?? 0,
      failedCount: recent?.failed ?? 0,
      failedRequestId: recent?.failed_request_id ?? "",
      ...(recent?.first_ms != null && {
        firstContentDuration: durationFromMs(Math.round(recent.first_ms)),
      }),
    },
    ...(failure && { failureTime: timestampFromMs(failure.atMs), failure: failure.what }),
    ...(success && {
      successTime: timestampFromMs(success.atMs),
      successDuration: durationFromMs(Math.round(success.durationMs)),
    }),
  });
}

function unlimitedModels(rows: readonly UnlimitedRow[], vendor: string) {
  return rows
    .filter((row) => row.vendor === vendor)
    .map((row) =>
      create(UnlimitedModelSchema, {
        model: row.model,
        callId: row.call_id,
        limitTokens: BigInt(row.limit_tokens),
        outputTokens: BigInt(row.output_tokens),
        createTime: timestampFromMs(row.create_time.getTime()),
      }),
    );
}

/** The line in the main file; 0 for the built-in configuration and for included files. */
function lineOf({ isDemo, source, places }: Config, path: Path): number {
  const place = places?.get(pathText(path));
  if (isDemo || place?.startsWith(`${source}:`) !== true) return 0;
  return Number(place.slice(source.length + 1));
}

function typeWord({ type }: ModelConfig): string {
  return ModelTypeSchema.value[type]?.name.replace(/^MODEL_TYPE_/, "") ?? "";
}

/**
 * Picks the model for a test.
 *
 * @throws GatewayError NOT_FOUND if the vendor serves none
 */
function modelToTest(
  served: readonly ModelConfig[],
  { vendor, modelKey }: { readonly vendor: string; readonly modelKey: string },
): ModelConfig {
  if (served.length === 0) {
    const text = `no model has a route to a vendor named ${JSON.stringify(vendor.slice(0, 100))}`;
    throw new GatewayError(ErrorCode.NOT_FOUND, text, { param: "vendor" });
  }
  const texts = served.filter((model) => typeWord(model) === "TEXT");
  const found = modelKey === "" ? texts[0] : texts.find(({ key }) => key === modelKey);
  if (found !== undefined) return found;
  const text = `vendor ${vendor} serves no such TEXT model: only TEXT models can be tested`;
  throw new GatewayError(ErrorCode.NOT_FOUND, text, { param: "model_key" });
}

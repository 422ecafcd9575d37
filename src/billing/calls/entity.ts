/**
 * Tables of the call log: the calls, their sums, and the watchers. SQL functions and triggers write
 * them.
 */
import { defineEntity, p } from "@mikro-orm/core";

/** Columns that differ from call to call. The ledger gets an array for each of them. */
const callOwn = {
  id: p.uuid().primary(),
  accountId: p.uuid(),
  requestId: p.text(),
  upstreamRequestId: p.text(),
  inputTokens: p.integer(),
  cachedInputTokens: p.integer(),
  cacheWriteTokens: p.integer(),
  outputTokens: p.integer(),
  reasoningTokens: p.integer(),
  cost: p.bigint(),
  held: p.bigint(),
  startTime: p.datetime().columnType("timestamptz"),
  durationMs: p.integer(),
  firstByteMs: p.integer(),
  vendorCost: p.bigint().nullable(),
};

/**
 * Columns that many calls have in common: the SQL type `call_kind`. The ledger gets them once for
 * each kind of call in a batch.
 */
const callKind = {
  keyId: p.text(),
  model: p.text(),
  vendor: p.text(),
  path: p.text(),
  stream: p.boolean(),
  status: p.integer(),
  errorCode: p.text(),
  ending: p.smallint(),
  usageSource: p.smallint(),
  priceVersion: p.text(),
  dropped: p.text().nullable(),
  discountBp: p.smallint().nullable(),
  charged: p.boolean().nullable(),
  images: p.integer().nullable(),
  secondMicros: p.bigint().nullable(),
  attempts: p.json().nullable(),
  units: p.json().nullable(),
};

/**
 * The record of a call. `ending`: CallEnding. `usageSource`: UsageSource. `errorCode`: the
 * documented word; empty on success. `cost`, `held`, `vendorCost` (what the vendor charges us,
 * booked beside the charge): nano-USD. `dropped`: what the other style could not express, comma
 * separated. `discountBp`: the account's discount in hundredths of a percent. `charged`: whether
 * the usage was charged; else the call was free, whatever it used. `images` made, and
 * `secondMicros` (microseconds of video or audio) made: null if there can be none. `attempts`: the
 * vendors that could not take the call before another one did, a list of AttemptRow. `units`:
 * quantities of units that few calls use, by their names in `uas.yaml`; null if there are none. Its
 * member `refused`: the number of refused calls that share the record.
 */
export const CallEntity = defineEntity({
  name: "CallEntity",
  tableName: "call",
  properties: { ...callOwn, ...callKind },
  indexes: [
    {
      name: "call_account_id_id_index",
      properties: ["accountId", "id"],
      include: ["model", "keyId", "status", "errorCode", "ending", "cost"],
    },
    {
      name: "call_failed_index",
      properties: ["accountId", "id"],
      include: ["model", "keyId", "status", "errorCode", "ending", "cost"],
      where: "ending <> ALL (ARRAY[1, 5, 10])",
    },
    { name: "call_attempts_index", properties: ["id"], where: "attempts is not null" },
    {
      name: "call_request_id_index",
      properties: ["requestId", "accountId", "id"],
      where: '"left"(request_id, 11) <> "left"((id)::text, 11)',
    },
  ],
});

/** The names of the columns of `call_kind`, in their order. */
export const callKindColumns: readonly string[] = Object.keys(callKind).map((name) =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
);

/** A watcher of the call log of an account, or of all accounts under the nil ID. */
export const CallWatchEntity = defineEntity({
  name: "CallWatchEntity",
  tableName: "call_watch",
  properties: {
    accountId: p.uuid().primary(),
    watcher: p.uuid().primary(),
    expireTime: p.datetime().columnType("timestamptz"),
  },
});

/**
 * Hourly usage of an account by key, model and vendor: sums of its calls, written by triggers in
 * the same transaction.
 */
export const UsageHourEntity = defineEntity({
  name: "UsageHourEntity",
  tableName: "usage_hour",
  properties: {
    accountId: p.uuid().primary(),
    hour: p.datetime().columnType("timestamptz").primary(),
    keyId: p.text().primary(),
    model: p.text().primary(),
    vendor: p.text().primary(),
    calls: p.bigint().defaultRaw("0"),
    failedCalls: p.bigint().defaultRaw("0"),
    inputTokens: p.bigint().defaultRaw("0"),
    cachedInputTokens: p.bigint().defaultRaw("0"),
    cacheWriteTokens: p.bigint().defaultRaw("0"),
    outputTokens: p.bigint().defaultRaw("0"),
    reasoningTokens: p.bigint().defaultRaw("0"),
    images: p.bigint().defaultRaw("0"),
    secondMicros: p.bigint().defaultRaw("0"),
    cost: p.bigint().defaultRaw("0"),
    vendorCost: p.bigint().defaultRaw("0"),
  },
  indexes: [{ name: "usage_hour_hour_index", properties: ["hour"] }],
});

/** The tables of the call log. */
export const callLogEntities = [CallEntity, UsageHourEntity, CallWatchEntity] as const;

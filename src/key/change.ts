/** What a request says of a key's name, models, expiry and limit (R-KEY-4). */
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { UpdateKeyRequest } from "../../gen/uas/key/v1/key_service_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { parseDisplayName } from "../account/display-name.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { readUpdateMask } from "../field-mask.ts";
import { parsePositiveMoney } from "../usd.ts";
import type { KeyRow } from "./message.ts";
import { parseModelList } from "./model-list.ts";

/** The members of a key that are changed, with their new values. */
export type ChangedKey = Partial<Pick<KeyRow, "name" | "models" | "expireTime" | "spendLimit">>;

const changeable = ["name", "models", "expire_time", "spend_limit"] as const;

/** The last moment that a Timestamp can mean, in milliseconds: the end of the year 9999. */
const timeMsMax = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Reads what an UpdateKey request changes.
 *
 * @throws GatewayError INVALID_REQUEST
 */
export function readKeyChange({ key, updateMask }: UpdateKeyRequest): ChangedKey {
  const members = readUpdateMask(updateMask, changeable);
  return {
    ...(members.has("name") && { name: parseDisplayName(key?.name ?? "", 0) }),
    ...(members.has("models") && { models: parseModelList(key?.models ?? []) }),
    ...(members.has("expire_time") && { expireTime: parseExpiry(key?.expireTime) }),
    ...(members.has("spend_limit") && { spendLimit: parseLimit(key?.spendLimit) }),
  };
}

/**
 * Reads until when a key is good; `null`: for ever. A time that is past is taken for a mistake: to stop a key,
 * disable it.
 *
 * @throws GatewayError INVALID_REQUEST
 */
export function parseExpiry(time: Timestamp | undefined): Date | null {
  if (time === undefined) return null;
  const wrong = (message: string): GatewayError =>
    new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "expire_time" });
  const { nanos } = time;
  const ms = Number(time.seconds) * 1_000;
  if (nanos < 0 || nanos > 999_999_999 || Math.abs(ms) > timeMsMax) {
    throw wrong("expire_time is no time between the years 1 and 9999");
  }
  const date = timestampDate(time);
  if (date.getTime() > Date.now()) return date;
  throw wrong("expire_time must be in the future; to stop a key now, disable it");
}

/** Reads what a key may spend in its life, in nano-USD; `null`: no limit. @throws GatewayError */
export function parseLimit(limit: Money | undefined): bigint | null {
  return limit === undefined ? null : parsePositiveMoney("spend_limit", limit);
}

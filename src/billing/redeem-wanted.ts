/** What redeem codes an operator wants. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { TopUpSource } from "../../gen/uas/billing/v1/billing_pb.ts";
import type { CreateRedeemCodesRequest } from "../../gen/uas/billing/v1/redeem_service_pb.ts";
import { redeemCodesMax } from "../config/log-limits.ts";
import { parseLine } from "../text-line.ts";
import { parseAmount } from "./booking.ts";
import { invalid } from "./invalid.ts";
import { parseEnum } from "./range.ts";

/** What each of them is. */
export interface WantedCodes {
  readonly amountNanos: bigint;
  readonly count: number;
  readonly source: TopUpSource;
  readonly note: string;
  /** Null: never. */
  readonly expireTime: Date | null;
}

/** The longest note, in characters. */
const noteCharsMax = 200;

/** Checks it. @throws GatewayError INVALID_REQUEST */
export function parseWantedCodes(request: CreateRedeemCodesRequest, now: Date): WantedCodes {
  const { count, expireTime, source } = request;
  if (count < 0 || count > redeemCodesMax) {
    throw invalid("count", `count must be 1 to ${redeemCodesMax}`);
  }
  const ends = expireTime === undefined ? null : timestampDate(expireTime);
  if (ends !== null && !(ends > now)) {
    throw invalid("expire_time", "expire_time must be in the future");
  }
  return {
    amountNanos: parseAmount(request.amount),
    count: count || 1,
    source: parseEnum("source", source, TopUpSource) || TopUpSource.PROMO,
    note: parseLine(request.note, { param: "note", charsMin: 0, charsMax: noteCharsMax }),
    expireTime: ends,
  };
}

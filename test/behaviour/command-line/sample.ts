/** Objects of the fake services in these tests. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Code, ConnectError } from "@connectrpc/connect";
import { type ErrorCode, ErrorDetailSchema } from "../../../gen/uas/error/v1/error_pb.ts";

export const accountId = "01890000-0000-7000-8000-000000000001";
export const keyId = "01890000-0000-7000-8000-000000000002";
export const time = "2026-11-21T09:30:00.000Z";
export const createTime = timestampFromDate(new Date(time));

/** An amount in nano-USD as Money. */
export const usd = (amountNanos: bigint) => ({ currencyCode: "USD", amountNanos });

export const balance = {
  accountId,
  balance: usd(10_000_000_000n),
  held: usd(2_500_000_000n),
  available: usd(7_500_000_000n),
};

/** Fails as a service does. */
export function refuse(code: Code, detail: ErrorCode, message: string): never {
  const value = create(ErrorDetailSchema, { code: detail });
  throw new ConnectError(message, code, undefined, [{ desc: ErrorDetailSchema, value }]);
}

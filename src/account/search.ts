/** What accounts a list of them is of. */
import type { FilterQuery } from "@mikro-orm/core";
import { AccountState } from "../../gen/uas/account/v1/account_pb.ts";
import type { ListAccountsRequest } from "../../gen/uas/account/v1/account_service_pb.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { parseLine } from "../text-line.ts";
import { isUuid } from "../uuid.ts";
import type { AccountRow } from "./message.ts";

/** The longest text that is searched for, in characters: the longest name. */
const queryCharsMax = 200;

/**
 * The accounts of a page: those after `after` that the request searches for.
 *
 * @throws GatewayError INVALID_REQUEST
 */
export function searchFor(
  { query, state }: ListAccountsRequest,
  after: string | undefined,
): FilterQuery<AccountRow> {
  const wanted = parseLine(query, { param: "query", charsMin: 0, charsMax: queryCharsMax });
  if (!(Object.values(AccountState) as number[]).includes(state)) {
    const message = "state is no state of accounts: use ACTIVE or SUSPENDED";
    throw new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "state" });
  }
  const id = wanted.toLowerCase();
  const like = `%${wanted.replaceAll(/[\\%_]/g, "\\$&")}%`;
  return {
    $and: [
      ...(after === undefined ? [] : [{ id: { $lt: after } }]),
      ...(state === AccountState.UNSPECIFIED ? [] : [{ state }]),
      ...(wanted === "" ? [] : [isUuid(id) ? { id } : { name: { $ilike: like } }]),
    ],
  };
}

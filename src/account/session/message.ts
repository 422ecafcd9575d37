/** Sessions as messages of the contract. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type Session,
  SessionSchema,
  type SignInMethod,
} from "../../../gen/uas/account/v1/session_pb.ts";
import type { SessionRow } from "./store.ts";

/** @param currentId the session that asks; `undefined`: none does */
export function sessionMessage(row: SessionRow, currentId: string | undefined): Session {
  return create(SessionSchema, {
    sessionId: row.id,
    userId: row.userId,
    method: row.method as SignInMethod,
    createTime: timestampFromDate(row.createTime),
    seenTime: timestampFromDate(row.seenTime),
    expireTime: timestampFromDate(row.expireTime),
    ipAddress: row.ipAddress,
    userAgent: row.userAgent,
    isCurrent: row.id === currentId,
  });
}

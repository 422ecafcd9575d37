/** Sessions as messages of the contract. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Session, SessionSchema } from "../../../gen/uas/account/v1/session_pb.ts";
import type { SessionRow } from "./store.ts";

/** @param currentId the session that asks; `undefined`: none does */
export function sessionMessage(row: SessionRow, currentId: string | undefined): Session {
  return create(SessionSchema, {
    sessionId: row.id,
    userId: row.user_id,
    method: row.method,
    createTime: timestampFromDate(row.create_time),
    seenTime: timestampFromDate(row.seen_time),
    expireTime: timestampFromDate(row.expire_time),
    ipAddress: row.ip_address,
    userAgent: row.user_agent,
    isCurrent: row.id === currentId,
  });
}

/** When nothing has to be proved. */
import { type Session, SignInMethod } from "../../../gen/uas/account/v1/session_pb.ts";
import { msOf } from "../time.ts";

/** How long after its beginning a session by a link may change the ways to sign in, in milliseconds. The gateway
 * says so; here it only decides which fields are shown. */
const freshMs = 15 * 60_000;

/** Whether the session was begun by a one-time link a short while ago. */
export function isFreshLink({ method, createTime }: Session): boolean {
  if (method !== SignInMethod.LINK || createTime === undefined) return false;
  return Date.now() - msOf(createTime) < freshMs;
}

/** Who is signed in. The cookie says it, which no script can read: the pages ask the gateway. */
import { useQuery } from "@connectrpc/connect-query";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import { type Session, SignInMethod } from "../../../gen/uas/account/v1/session_pb.ts";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { type User, UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { msOf } from "./time.ts";

/** Somebody who is signed in. */
export interface SignedIn {
  readonly user: User;
  readonly session: Session;
  readonly account: Account;
  /** Whether keys are kept so that they can be shown again. */
  readonly canRevealKeys: boolean;
  readonly isOperator: boolean;
}

/** The answer to who is signed in, with its state. */
export function useSessionQuery() {
  return useQuery(
    SessionService.method.getSession,
    {},
    {
      select: ({ user, session, account, canRevealKeys }): SignedIn | undefined =>
        user === undefined || session === undefined || account === undefined
          ? undefined
          : {
              user,
              session,
              account,
              canRevealKeys,
              isOperator: user.role === UserRole.OPERATOR,
            },
    },
  );
}

/** Who is signed in; for pages inside the frame, which draws them only then. */
export function useSession(): SignedIn {
  const { data } = useSessionQuery();
  if (data === undefined) throw new Error("nobody is signed in");
  return data;
}

/** The account of whoever is signed in. */
export function useAccountId(): string {
  return useSession().account.accountId;
}

/** How long after its beginning a session by a link may change the ways to sign in, in milliseconds. The gateway
 * says so; here it only decides which fields are shown. */
const freshMs = 15 * 60_000;

/** Whether the session was begun by a one-time link a short while ago. */
export function isFreshLink({ method, createTime }: Session): boolean {
  if (method !== SignInMethod.LINK || createTime === undefined) return false;
  return Date.now() - msOf(createTime) < freshMs;
}

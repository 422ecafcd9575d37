/**
 * The signed-in user. No script can read the session cookie, so the pages request the user from the
 * gateway.
 */
import { useQuery } from "@connectrpc/connect-query";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import { type Session, SignInMethod } from "../../../gen/uas/account/v1/session_pb.ts";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { type User, UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { msOf } from "./time.ts";

/** The signed-in user with account and session. */
export interface SignedIn {
  readonly user: User;
  readonly session: Session;
  readonly account: Account;
  /** Whether the gateway stores keys so that they can be shown again. */
  readonly canRevealKeys: boolean;
  readonly isOperator: boolean;
}

/** The query of the signed-in user. */
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

/** The signed-in user, for pages inside the layout, which renders them only then. */
export function useSession(): SignedIn {
  const { data } = useSessionQuery();
  if (data === undefined) throw new Error("no user is signed in");
  return data;
}

/** The account of the signed-in user. */
export function useAccountId(): string {
  return useSession().account.accountId;
}

/**
 * Time for which a session by link may change sign-in methods without further proof. The gateway
 * enforces it; here it only decides which fields are shown.
 */
const freshMs = 15 * 60_000;

/** Whether the session started with a one-time link a short while ago. */
export function isFreshLink({ method, createTime }: Session): boolean {
  if (method !== SignInMethod.LINK || createTime === undefined) return false;
  return Date.now() - msOf(createTime) < freshMs;
}

/** What the RPCs of signing in share. */
import type { Account } from "../../gen/uas/account/v1/account_pb.ts";
import type { SignInMethod } from "../../gen/uas/account/v1/session_pb.ts";
import type { Caller } from "../core/caller.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { Sealing } from "../core/sealing.ts";
import { isUuid } from "../core/uuid.ts";
import type { Codes } from "./code/codes.ts";
import type { Failures } from "./session/failures.ts";
import type { Sessions } from "./session/store.ts";
import type { Links } from "./user/links.ts";
import type { CheckTotp } from "./user/proof.ts";
import type { Users } from "./user/store.ts";

/** How an installation lets people in. */
interface SignInRules {
  /** Whether there is something that sends codes. */
  readonly hasCodes: boolean;
  /** Whether codes are shown instead of sent. */
  readonly isDevelopment: boolean;
  /** The countries whose numbers are served; empty: all. */
  readonly countries: readonly string[];
  /** Whether the first sign-in with a number makes an account. */
  readonly hasSignUp: boolean;
  /** Whether keys are kept so that they can be shown again. */
  readonly canRevealKeys: boolean;
}

/** The parts. */
export interface SignInRoom {
  readonly rules: SignInRules;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly links: Links;
  readonly codes: Codes;
  readonly failures: Failures;
  readonly checkTotp: CheckTotp;
  /** Seals the secrets of authenticators. */
  readonly sealing: () => Sealing;
  /** An account as the caller may see it. */
  readonly accountOf: (caller: Caller | undefined, accountId: string) => Promise<Account>;
  /** Told of each sign-in, without secrets. */
  readonly onSignIn: (method: SignInMethod, userId: string, ipAddress: string) => void;
}

/* Which accounts a caller may see and change. What kind of caller may call at all is checked before. */

/** Whether the caller may see this account: an operator any, a session its own. */
export function maySeeAccount(caller: Caller | undefined, accountId: string): boolean {
  if (caller?.kind === "operator") return true;
  return caller?.kind === "session" && caller.accountId === accountId;
}

/**
 * The account of a request, as far as it can be told without asking the database.
 *
 * @throws GatewayError NOT_FOUND for a malformed id and for an account of somebody else: as for one that
 * does not exist, so that nobody learns which do.
 */
export function parseAccountId(caller: Caller | undefined, accountId: string): string {
  if (!isUuid(accountId) || !maySeeAccount(caller, accountId)) throw noSuchAccount();
  return accountId;
}

/** What is said of an account that does not exist or is somebody else's. */
export function noSuchAccount(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such account: check account_id");
}

/** Shared parts of the sign-in RPCs. */
import type { Account } from "../../gen/uas/account/v1/account_pb.ts";
import type { SignInMethod } from "../../gen/uas/account/v1/session_pb.ts";
import type { Caller } from "../core/caller.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { Sealing } from "../core/sealing.ts";
import { isUuid } from "../core/uuid.ts";
import type { Codes } from "./code/codes.ts";
import type { Failures } from "./session/failures.ts";
import type { KnownBrowsers } from "./session/known-browsers.ts";
import type { Sessions } from "./session/store.ts";
import type { Links } from "./user/links.ts";
import type { CheckTotp } from "./user/proof.ts";
import type { Users } from "./user/store.ts";

/** Sign-in rules of the installation. */
interface SignInRules {
  /** Whether codes can be sent. */
  readonly hasCodes: boolean;
  /** Whether codes are shown instead of sent. */
  readonly isDevelopment: boolean;
  /** Countries whose numbers are accepted; empty means all. */
  readonly countries: readonly string[];
  /** Whether the first sign-in with a number creates an account. */
  readonly hasSignUp: boolean;
  /** Whether keys are stored so that they can be shown again. */
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
  readonly known: KnownBrowsers;
  readonly checkTotp: CheckTotp;
  /** Encrypts the secrets of authenticators. */
  readonly sealing: () => Sealing;
  /** Reads an account for a caller. */
  readonly accountOf: (caller: Caller | undefined, accountId: string) => Promise<Account>;
  /** Called for each sign-in, without secrets. */
  readonly onSignIn: (method: SignInMethod, userId: string, ipAddress: string) => void;
}

/** Whether the caller may see this account: operators see all, sessions only the user's. */
export function maySeeAccount(caller: Caller | undefined, accountId: string): boolean {
  if (caller?.kind === "operator") return true;
  return caller?.kind === "session" && caller.accountId === accountId;
}

/**
 * Reads an account id, as far as possible without the database.
 *
 * @throws GatewayError NOT_FOUND for a malformed id and for another caller's account, as for an
 * unknown one, so that callers cannot probe for accounts
 */
export function parseAccountId(caller: Caller | undefined, accountId: string): string {
  if (!isUuid(accountId) || !maySeeAccount(caller, accountId)) throw noSuchAccount();
  return accountId;
}

/** The error for an account that does not exist or is not the caller's. */
export function noSuchAccount(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such account: check account_id");
}

/** What the RPCs of signing in share. */
import type { Account } from "../../gen/uas/account/v1/account_pb.ts";
import type { SignInMethod } from "../../gen/uas/account/v1/session_pb.ts";
import type { Sealing } from "../sealing.ts";
import type { Caller } from "../caller.ts";
import type { Codes } from "./code/codes.ts";
import type { Failures } from "./session/failures.ts";
import type { Sessions } from "./session/store.ts";
import type { Links } from "./user/links.ts";
import type { CheckTotp } from "./user/proof.ts";
import type { Users } from "./user/store.ts";

/** How an installation lets people in. */
export interface SignInRules {
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

/** Checks authenticator codes as a second factor. */
import type { Clock } from "../../core/clock.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { SealedColumns } from "../../core/sealed-columns.ts";
import type { Sealing } from "../../core/sealing.ts";
import type { Attempt, Failures } from "../session/failures.ts";
import type { UserRow, Users } from "./store.ts";
import { totpPeriod } from "./totp.ts";

/** Encryption context of authenticator secrets, in addition to the account. */
export function totpContext(userId: string): Buffer {
  return Buffer.from(`totp ${userId}`);
}

/** The purpose of the encryption of authenticator secrets. */
export const totpPurpose = "authenticator";

/** The secrets of authenticators as they are stored, for a change of the master key. */
export const sealedAuthenticators: SealedColumns = {
  table: "console_user",
  key: ["id"],
  columns: ["totp", "totp_pending"],
  account: "account_id",
  purpose: totpPurpose,
  context: (row) => totpContext(row["id"] as string),
};

/** Options of {@link createTotpCheck}. */
export interface TotpCheckOptions {
  readonly users: Users;
  readonly failures: Failures;
  readonly sealing: () => Sealing;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Checks an authenticator code; accepts users without an authenticator.
 *
 * @param from origin of the code: sign-ins and steps of a session are counted apart
 * @throws GatewayError INVALID_REQUEST; RATE_LIMIT_EXCEEDED after too many wrong ones
 */
export type CheckTotp = (
  user: Pick<UserRow, "id" | "accountId" | "totp">,
  code: string,
  from: Pick<Attempt, "ipAddress" | "knownAs">,
) => Promise<void>;

/** Creates the check. Each code is accepted once, so that an observed code is useless. */
export function createTotpCheck({ users, failures, sealing, clock }: TotpCheckOptions): CheckTotp {
  return async (user, code, from) => {
    if (user.totp == null) return;
    if (code === "")
      throw badTotp("totp_code is required: send the 6 digits that your authenticator app shows");
    // By its sealed secret: the codes of another authenticator have a separate count.
    const subject = `totp ${user.id} ${Buffer.from(user.totp).toString("base64url")}`;
    const forgive = await failures.beginTotp({ ...from, subject });
    const secret = sealing().open(user.accountId, totpContext(user.id), Buffer.from(user.totp));
    if (secret === undefined) throw cannotOpen();
    const typed = code.replaceAll(/\s/g, "");
    const period = totpPeriod(secret, typed, clock.now());
    if (period !== undefined && (await users.takeTotpStep(user.id, period))) return forgive();
    throw badTotp("totp_code is wrong or was used before: send the 6 digits that are shown now");
  };
}

function badTotp(message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "totp_code" });
}

function cannotOpen(): GatewayError {
  return new GatewayError(
    ErrorCode.INTERNAL_ERROR,
    "the authenticator's secret cannot be opened: it was sealed with another master key; the operator must set UAS_MASTER_KEY to the gateway's key",
  );
}

/**
 * Authenticator apps: time-based one-time passwords (RFC 6238) of 6 digits, by HMAC-SHA1, for 30
 * seconds each.
 */
import { Secret, TOTP } from "otpauth";

const periodSeconds = 30;
const digits = 6;

/** Maximum error of a clock in periods, in either direction. */
const driftPeriods = 1;

/** 160 bits, as RFC 4226 recommends. */
const secretBytes = 20;

/** Creates the secret of an authenticator, in base32. */
export function newTotpSecret(): string {
  return new Secret({ size: secretBytes }).base32;
}

/** The secret as authenticator apps read it from a QR code. */
export function totpUri(secret: string, label: string): string {
  return authenticator(secret, label).toString();
}

/** The code of a period, counted in 30 seconds since 1970. */
export function totpCode(secret: string, period: number): string {
  return authenticator(secret).generate({ timestamp: period * periodSeconds * 1_000 });
}

/**
 * The period of this code among those near to a time; undefined if it matches none of them. Codes
 * are compared in constant time. The caller refuses a period whose code was used before.
 */
export function totpPeriod(secret: string, code: string, nowMs: number): number | undefined {
  // The library throws at six characters of several bytes each.
  if (!/^\d{6}$/.test(code)) return undefined;
  const drift = authenticator(secret).validate({
    token: code,
    timestamp: nowMs,
    window: driftPeriods,
  });
  return drift === null
    ? undefined
    : TOTP.counter({ period: periodSeconds, timestamp: nowMs }) + drift;
}

function authenticator(secret: string, label = ""): TOTP {
  return new TOTP({
    issuer: "UAS Gateway",
    label,
    secret,
    algorithm: "SHA1",
    digits,
    period: periodSeconds,
  });
}

/**
 * Signs webhooks in two ways at once. `X-AI-Service-Signature` is an HMAC of the body alone.
 * `webhook-signature` follows Standard Webhooks: the signature also covers id and time, and
 * libraries for Standard Webhooks verify it. docs/webhooks.md explains both to receivers.
 */
import { createHmac, randomBytes } from "node:crypto";

/** The prefix of secrets, as in Standard Webhooks. */
const prefix = "whsec_";

/** The secrets that sign an account's webhooks now. */
export interface SigningSecrets {
  /** Signs `X-AI-Service-Signature`. */
  readonly current: string;
  /**
   * The other secret during a rotation, new or old; `webhook-signature` contains both signatures.
   * Undefined if there is no rotation.
   */
  readonly other: string | undefined;
}

/** The message to sign. */
export interface SignedMessage {
  /** The same in every attempt. It contains no dot. */
  readonly eventId: string;
  readonly body: Uint8Array;
  /** The time of the attempt. */
  readonly time: Date;
}

/** Generates a secret: `whsec_` and 32 random bytes in base64. */
export function newSecret(): string {
  return prefix + randomBytes(32).toString("base64");
}

/**
 * The signature headers of a webhook. The HMAC key of `X-AI-Service-Signature` is the whole secret
 * as UTF-8; the key of `webhook-signature` is the bytes that the secret encodes in base64.
 */
export function signatureHeaders(
  { eventId, body, time }: SignedMessage,
  { current, other }: SigningSecrets,
): Record<string, string> {
  const seconds = String(Math.floor(time.getTime() / 1_000));
  const secrets = other === undefined ? [current] : [current, other];
  const signed = secrets.map((secret) => `v1,${standardDigest(secret, [eventId, seconds], body)}`);
  return {
    "x-ai-service-signature": plainDigest(current, body),
    ...(other !== undefined && { "x-ai-service-signature-secondary": plainDigest(other, body) }),
    "x-ai-service-timestamp": time.toISOString(),
    "webhook-id": eventId,
    "webhook-timestamp": seconds,
    "webhook-signature": signed.join(" "),
  };
}

function plainDigest(secret: string, body: Uint8Array): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

function standardDigest(
  secret: string,
  [id, seconds]: readonly string[],
  body: Uint8Array,
): string {
  const key = Buffer.from(secret.slice(prefix.length), "base64");
  return createHmac("sha256", key).update(`${id}.${seconds}.`).update(body).digest("base64");
}

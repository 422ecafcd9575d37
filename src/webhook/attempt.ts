/** One attempt of a delivery: signs it, sends it once, and returns the result. */
import { AddressClass, AttemptOutcome } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { webhookAnswerBytesKept } from "../config/limits.ts";
import { GuardFailure, type GuardFailureKind } from "../http/guard-failure.ts";
import type { GuardedClient, GuardedTimes } from "../http/guarded-client.ts";
import { outcomeOf, readRetryAfter } from "./schedule.ts";
import { signatureHeaders, type SigningSecrets } from "./signature.ts";

/** The message to send. */
export interface Message {
  /** The delivery's id. */
  readonly id: string;
  readonly url: string;
  readonly body: Buffer;
}

/** Result of one attempt. */
export interface AttemptResult {
  readonly startTime: Date;
  readonly outcome: AttemptOutcome;
  /** 0: there was no answer. */
  readonly status: number;
  readonly addressClass: AddressClass;
  readonly times: GuardedTimes;
  /** The beginning of the answer's body. */
  readonly answer: Buffer;
  /** The receiver's `retry-after`, in milliseconds; 0: none. */
  readonly retryAfterMs: number;
}

/** How to send a message. */
export interface AttemptOptions {
  readonly client: GuardedClient;
  readonly secrets: SigningSecrets;
  /** The time of the attempt. */
  readonly time: Date;
  /** How long the receiver may take, in milliseconds. */
  readonly answerMs: number;
}

const outcomes: Readonly<Record<GuardFailureKind, AttemptOutcome>> = {
  blocked_address: AttemptOutcome.BLOCKED_ADDRESS,
  dns: AttemptOutcome.DNS,
  connect: AttemptOutcome.CONNECT,
  tls: AttemptOutcome.TLS,
  timeout: AttemptOutcome.TIMEOUT,
  reset: AttemptOutcome.RESET,
  too_large: AttemptOutcome.RESET,
  aborted: AttemptOutcome.LOST,
};

const addressClasses: Readonly<Record<GuardedTimes["addressClass"], AddressClass>> = {
  none: AddressClass.UNSPECIFIED,
  public_ipv4: AddressClass.PUBLIC_IPV4,
  public_ipv6: AddressClass.PUBLIC_IPV6,
  listed: AddressClass.LISTED,
  blocked: AddressClass.BLOCKED,
};

/** Sends a message once. Never rejects. */
export async function tryOnce(message: Message, options: AttemptOptions): Promise<AttemptResult> {
  const { id: eventId, url, body } = message;
  const { client, secrets, time, answerMs } = options;
  const pieces: Uint8Array[] = [];
  let left = webhookAnswerBytesKept;
  const { outcome, times } = await client.send({
    method: "POST",
    url,
    headers: {
      "content-type": "application/json",
      "user-agent": "uas-gateway-webhooks",
      ...signatureHeaders({ eventId, body, time }, secrets),
    },
    body,
    headMs: answerMs,
    // The status decides: a body that is cut off cannot make the attempt a failure.
    whenCut: "cut",
    sink(bytes) {
      if (left <= 0) return;
      pieces.push(bytes.subarray(0, left));
      left -= bytes.length;
    },
  });
  const isFailure = outcome instanceof GuardFailure;
  return {
    startTime: time,
    outcome: isFailure ? outcomes[outcome.kind] : outcomeOf(outcome.status),
    status: isFailure ? 0 : outcome.status,
    addressClass: addressClasses[times.addressClass],
    times,
    answer: Buffer.concat(pieces),
    retryAfterMs: isFailure ? 0 : readRetryAfter(outcome.headers["retry-after"], time),
  };
}

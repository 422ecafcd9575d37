import { ErrorCode, GatewayError } from "../../core/errors.ts";

/** What sends codes. Providers differ in nothing else. */

/** A message with a code. */
export interface SmsMessage {
  /** In E.164 form. */
  readonly to: string;
  /** Digits. */
  readonly code: string;
  readonly language: "en" | "zh";
  /** The whole message, for providers that send texts; the others fill their own template with the code. */
  readonly text: string;
}

/** A provider. */
export interface Sms {
  /** Whether it only shows codes instead of sending them. */
  readonly isDevelopment: boolean;
  /** Resolves when the provider has taken the message. @throws {@link SmsFailure} */
  send(message: SmsMessage): Promise<void>;
  /** Told that a code was right: some providers want to know. Never rejects. */
  confirmed(to: string): void;
  close(): Promise<void>;
}

/** A message that was not taken. The message is for the log: it holds neither number nor code. */
export class SmsFailure extends Error {}

/* Where no provider is configured. */

/** What is said where a code is asked for that nobody can send. */
export function noSms(): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "this gateway sends no SMS: its operator configures a provider under sms in uas.yaml",
  );
}

/** Refuses every message. */
export function createNoSms(): Sms {
  return {
    isDevelopment: false,
    send: () => Promise.reject(noSms()),
    confirmed() {},
    async close() {},
  };
}

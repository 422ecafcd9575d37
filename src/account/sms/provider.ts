/** A provider that sends messages with codes. */

/** A message with a code. */
export interface SmsMessage {
  /** In E.164 form. */
  readonly to: string;
  /** Digits. */
  readonly code: string;
  readonly language: "en" | "zh";
  /**
   * The whole text, for providers that send texts. Other providers insert the code into a template.
   */
  readonly text: string;
}

/** An SMS provider. */
export interface Sms {
  /** Whether it shows codes instead of sending them. */
  readonly isDevelopment: boolean;
  /** Resolves when the provider has accepted the message. @throws {@link SmsFailure} */
  send(message: SmsMessage): Promise<void>;
  /**
   * Reports that a code was entered correctly, for providers that track conversion. Never rejects.
   */
  confirmed(to: string): void;
  close(): Promise<void>;
}

/**
 * A message that was not accepted. The error text is for the log and contains neither number nor
 * code.
 */
export class SmsFailure extends Error {}

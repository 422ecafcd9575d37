/** Sends e-mails over SMTP. */
import { createTransport } from "nodemailer";
import type { SmtpConfig } from "../config/smtp.ts";

/** One e-mail to one recipient. */
export interface Mail {
  /**
   * The same for each attempt: servers and readers recognise a repetition by it. Without angle
   * brackets and domain.
   */
  readonly id: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/**
 * `sent`; `refused`: the server will never accept it; `failed`: it may accept it later. With the
 * server's reason.
 */
export type MailOutcome =
  | { readonly kind: "sent" }
  | { readonly kind: "refused" | "failed"; readonly reason: string };

/** Sends e-mails. */
export interface Mailer {
  /** Sends one. Never rejects. */
  send(mail: Mail): Promise<MailOutcome>;
  close(): void;
}

/** Timeout of each step of a connection. */
const stepMs = 10_000;

/**
 * Opens connections as needed; at most two at once, so that a burst of alerts does not look like
 * spam.
 */
export function createMailer({ url, from }: SmtpConfig): Mailer {
  const timeouts = {
    connectionTimeout: stepMs,
    greetingTimeout: stepMs,
    socketTimeout: stepMs,
    dnsTimeout: stepMs,
  };
  const transport = createTransport({ url, pool: true, maxConnections: 2, ...timeouts });
  const domain = /@([^\s>]+)/.exec(from)?.[1] ?? "localhost";
  return {
    async send({ id, to, subject, text }) {
      try {
        await transport.sendMail({
          from,
          to: { name: "", address: to },
          subject,
          text,
          messageId: `<${id}@${domain}>`,
          // Prevents out-of-office replies.
          headers: { "auto-submitted": "auto-generated" },
          disableFileAccess: true,
          disableUrlAccess: true,
        });
        return { kind: "sent" };
      } catch (error) {
        return outcomeOf(error);
      }
    },
    close: () => transport.close(),
  };
}

/**
 * SMTP returns 5xx for permanent refusals. They count only for the recipient or the message, not
 * for the gateway's credentials.
 */
function outcomeOf(error: unknown): MailOutcome {
  const {
    responseCode = 0,
    code,
    message,
  } = error as Error & {
    readonly responseCode?: number;
    readonly code?: string;
  };
  const isFinal = responseCode >= 500 && (code === "EENVELOPE" || code === "EMESSAGE");
  return { kind: isFinal ? "refused" : "failed", reason: message.slice(0, 500) };
}

/** Sends a POST to an SMS provider. */
import { smsAnswerMs } from "../../core/limits.ts";
import { createHttpClient } from "../../http/client.ts";
import { HttpFailure } from "../../http/failure.ts";
import { SmsFailure } from "./provider.ts";

/** The provider's answer. */
interface SmsAnswer {
  readonly status: number;
  /** The body as JSON; an empty object if it is none. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** A POST request. */
interface SmsPost {
  /** Path and query, with a leading slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Posts to one provider. */
interface SmsPoster {
  /** The provider's host name, as sent in the request. */
  readonly host: string;
  /** The path of the provider's URL, without a trailing slash. */
  readonly basePath: string;
  /** @throws SmsFailure if there is no answer */
  post(post: SmsPost): Promise<SmsAnswer>;
  close(): Promise<void>;
}

/** Maximum length of an answer. */
const answerBytesMax = 64 * 1024;

/** Creates a poster. */
export function createSmsPoster(address: string): SmsPoster {
  const url = new URL(address);
  const client = createHttpClient(url.origin, {
    connectMs: smsAnswerMs,
    firstByteMs: smsAnswerMs,
    idleMs: smsAnswerMs,
  });
  return {
    host: url.host,
    basePath: url.pathname.replace(/\/$/, ""),
    async post({ path, headers, body }) {
      try {
        const signal = AbortSignal.timeout(smsAnswerMs);
        const pieces = body === "" ? [] : [Buffer.from(body)];
        const request = { method: "POST", path, headers, body: pieces, signal } as const;
        const reply = await client.send(request);
        return { status: reply.status, body: readJson(await reply.body.whole(answerBytesMax)) };
      } catch (cause) {
        // Only the kind of failure is kept: library messages may repeat the request.
        const kind = cause instanceof HttpFailure ? cause.kind : "unreadable answer";
        throw new SmsFailure(`the SMS provider did not answer: ${kind}`);
      }
    },
    close: () => client.close(),
  };
}

function readJson(bytes: Buffer): SmsAnswer["body"] {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

/** The error for a message that the provider refused. */
export function refusedBy(
  provider: string,
  { status, body }: SmsAnswer,
  code: unknown,
): SmsFailure {
  const reason = typeof code === "string" || typeof code === "number" ? ` ${code}` : "";
  const message = body["message"] ?? body["Message"];
  const text = typeof message === "string" ? `: ${message.replace(/\+?\d{5,}/g, "[number]")}` : "";
  return new SmsFailure(
    `${provider} did not accept the message: ${status}${reason}${text}`.slice(0, 300),
  );
}

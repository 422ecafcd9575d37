/** Messages with codes, and the providers that send them. */
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { createHash, createHmac, randomUUID } from "node:crypto";
import type {
  AliyunSmsConfig,
  HttpSmsConfig,
  SmsConfig,
  TwilioSmsConfig,
} from "../../config/config.ts";
import { smsAnswerMs } from "../../core/limits.ts";
import { createHttpClient } from "../../http/client.ts";
import { HttpFailure } from "../../http/failure.ts";

/** A message with a code. */
export interface SmsMessage {
  /** In E.164 form. */
  readonly to: string;
  /** Digits. */
  readonly code: string;
  readonly language: "en" | "zh";
  /** The whole text, for providers that send texts. Others fill their own template with the code. */
  readonly text: string;
}

/** An SMS provider. */
export interface Sms {
  /** Whether it shows codes instead of sending them. */
  readonly isDevelopment: boolean;
  /** Resolves when the provider has accepted the message. @throws {@link SmsFailure} */
  send(message: SmsMessage): Promise<void>;
  /** Reports that a code was entered correctly, for providers that track conversion. Never rejects. */
  confirmed(to: string): void;
  close(): Promise<void>;
}

/** A message that was not accepted. The error text is for the log and contains neither number nor code. */
export class SmsFailure extends Error {}

/** The error where no provider is configured. */
export function noSms(): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "this gateway cannot send SMS: ask its operator to configure a provider under sms in uas.yaml",
  );
}

/** A provider that refuses every message. */
function createNoSms(): Sms {
  return {
    isDevelopment: false,
    send: () => Promise.reject(noSms()),
    confirmed() {},
    async close() {},
  };
}

/**
 * Creates the configured SMS provider.
 *
 * @param config `undefined` where none is configured
 * @param show prints the messages of the development provider
 */
export function createSms(config: SmsConfig | undefined, show: (message: string) => void): Sms {
  if (config === undefined) return createNoSms();
  if (config.provider === "http") return createHttpSms(config);
  if (config.provider === "twilio") return createTwilioSms(config);
  return config.provider === "aliyun" ? createAliyunSms(config) : createConsoleSms(show);
}

/** The development provider, which sends nothing. @param show prints each message; pages show the code too */
function createConsoleSms(show: (message: string) => void): Sms {
  return {
    isDevelopment: true,
    async send({ text }) {
      show(`development: an SMS would say: ${text}`);
    },
    confirmed() {},
    async close() {},
  };
}

/**
 * A server of the operator's own. Each message is a JSON POST, and any 2xx status means that the server will send
 * it.
 */
function createHttpSms({ url, token }: HttpSmsConfig): Sms {
  const poster = createSmsPoster(url);
  const path = `${new URL(url).pathname}${new URL(url).search}`;
  const headers = {
    "content-type": "application/json",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  return {
    isDevelopment: false,
    async send({ to, code, language, text }) {
      const body = JSON.stringify({ to, code, language, text });
      const answer = await poster.post({ path, headers, body });
      if (answer.status < 200 || answer.status > 299) {
        throw refusedBy("the SMS server", answer, undefined);
      }
    },
    confirmed() {},
    close: () => poster.close(),
  };
}

// Sends codes with Twilio Verify. Codes are ours, so the service needs "custom verification code" switched on.

/** How many verifications are remembered until they are confirmed. */
const rememberedMax = 10_000;

/** Creates the provider. */
function createTwilioSms(config: TwilioSmsConfig): Sms {
  const { baseUrl, accountSid, authToken, serviceSid } = config;
  const poster = createSmsPoster(baseUrl);
  const path = `${poster.basePath}/v2/Services/${encodeURIComponent(serviceSid)}/Verifications`;
  const headers = {
    authorization: `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString("base64")}`,
    "content-type": "application/x-www-form-urlencoded",
  };
  const sids = new Map<string, string>();
  return {
    isDevelopment: false,
    async send({ to, code, language }) {
      const form = { To: to, Channel: "sms", CustomCode: code, Locale: language };
      const body = String(new URLSearchParams(form));
      const answer = await poster.post({ path, headers, body });
      if (answer.status !== 200 && answer.status !== 201) {
        throw refusedBy("Twilio", answer, answer.body["code"]);
      }
      const { sid } = answer.body;
      if (typeof sid !== "string") return;
      if (sids.size >= rememberedMax) sids.clear();
      sids.set(to, sid);
    },
    // Twilio rates its routes by confirmed codes. Codes sent by another process are not reported.
    confirmed(to) {
      const sid = sids.get(to);
      sids.delete(to);
      if (sid === undefined) return;
      const approve = {
        path: `${path}/${encodeURIComponent(sid)}`,
        headers,
        body: "Status=approved",
      };
      poster.post(approve).catch(() => {});
    },
    close: () => poster.close(),
  };
}

// Sends codes with Alibaba Cloud SMS: RPC `SendSms`, signed with ACS3-HMAC-SHA256.

/** Creates the provider. */
function createAliyunSms(config: AliyunSmsConfig): Sms {
  const { signName, templateCode } = config;
  const poster = createSmsPoster(config.baseUrl);
  return {
    isDevelopment: false,
    async send({ to, code }) {
      const signed = signAliyun(config, {
        host: poster.host,
        path: `${poster.basePath}/`,
        action: "SendSms",
        version: "2017-05-25",
        query: {
          PhoneNumbers: aliyunNumber(to),
          SignName: signName,
          TemplateCode: templateCode,
          TemplateParam: JSON.stringify({ code }),
        },
        date: `${new Date().toISOString().slice(0, 19)}Z`,
        nonce: randomUUID(),
      });
      const answer = await poster.post({ ...signed, body: "" });
      if (answer.body["Code"] !== "OK") throw refusedBy("Aliyun", answer, answer.body["Code"]);
    },
    confirmed() {},
    close: () => poster.close(),
  };
}

/** Numbers of mainland China without country code, others without the plus. */
function aliyunNumber(number: string): string {
  return number.replace(/^\+86(?=1)/, "").replace(/^\+/, "");
}

/** A call to sign. */
interface AliyunCall {
  readonly host: string;
  readonly path: string;
  readonly action: string;
  readonly version: string;
  readonly query: Readonly<Record<string, string>>;
  /** In the form `2023-10-26T10:22:32Z`. */
  readonly date: string;
  readonly nonce: string;
}

/** Signs a call without a body. */
export function signAliyun(
  { accessKeyId, accessKeySecret }: Pick<AliyunSmsConfig, "accessKeyId" | "accessKeySecret">,
  { host, path, action, version, query, date, nonce }: AliyunCall,
): { readonly path: string; readonly headers: Readonly<Record<string, string>> } {
  const queryText = Object.keys(query)
    .toSorted()
    .map((name) => `${encode(name)}=${encode(query[name] ?? "")}`)
    .join("&");
  const signed: Readonly<Record<string, string>> = {
    host,
    "x-acs-action": action,
    "x-acs-content-sha256": sha256(""),
    "x-acs-date": date,
    "x-acs-signature-nonce": nonce,
    "x-acs-version": version,
  };
  const names = Object.keys(signed).join(";");
  const lines = Object.entries(signed).map(([name, value]) => `${name}:${value}\n`);
  const canonical = ["POST", path, queryText, lines.join(""), names, sha256("")].join("\n");
  const signature = createHmac("sha256", accessKeySecret)
    .update(`ACS3-HMAC-SHA256\n${sha256(canonical)}`)
    .digest("hex");
  const authorization = `ACS3-HMAC-SHA256 Credential=${accessKeyId},SignedHeaders=${names},Signature=${signature}`;
  return { path: `${path}?${queryText}`, headers: { ...signed, authorization } };
}

/** Percent-encoding of RFC 3986, which encodes more characters than JavaScript's own. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

// Sends a POST to an SMS provider.

/** The provider's answer. */
interface SmsAnswer {
  readonly status: number;
  /** The body as JSON; an empty object where it is none. */
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
  /** @throws SmsFailure where there is no answer */
  post(post: SmsPost): Promise<SmsAnswer>;
  close(): Promise<void>;
}

/** Longest answer, in bytes. */
const answerBytesMax = 64 * 1024;

/** Creates a poster. */
function createSmsPoster(address: string): SmsPoster {
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
        // Only the kind of failure is kept: library messages may repeat what was sent.
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
function refusedBy(provider: string, { status, body }: SmsAnswer, code: unknown): SmsFailure {
  const reason = typeof code === "string" || typeof code === "number" ? ` ${code}` : "";
  const message = body["message"] ?? body["Message"];
  const text = typeof message === "string" ? `: ${message.replace(/\+?\d{5,}/g, "[number]")}` : "";
  return new SmsFailure(
    `${provider} did not accept the message: ${status}${reason}${text}`.slice(0, 300),
  );
}

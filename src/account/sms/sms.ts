/** Chooses the provider that sends messages with codes. */
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { Config, HttpSmsConfig, SmsConfig } from "../../config/config.ts";
import { liveClient } from "../../core/derived.ts";
import { createTwilioSms } from "./twilio.ts";
import { createAliyunSms } from "./alibaba.ts";
import type { Sms } from "./provider.ts";
import { createSmsPoster, refusedBy } from "./post.ts";

/** The error if no provider is configured. */
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
 * Creates the provider of the SMS settings in force, which may change. Codes that were sent by an
 * earlier one can still be entered.
 *
 * @param show prints the messages of the development provider
 */
export function createLiveSms(config: Pick<Config, "sms">, show: (message: string) => void): Sms {
  const none = createNoSms();
  const live = liveClient(
    () => config.sms,
    (settings) => createSms(settings, show),
  );
  const current = (): Sms => live.current() ?? none;
  return {
    get isDevelopment() {
      return current().isDevelopment;
    },
    send: (message) => current().send(message),
    confirmed: (to) => current().confirmed(to),
    close: () => live.close(),
  };
}

/**
 * Creates the configured SMS provider.
 *
 * @param config undefined if none is configured
 * @param show prints the messages of the development provider
 */
export function createSms(config: SmsConfig | undefined, show: (message: string) => void): Sms {
  if (config === undefined) return createNoSms();
  if (config.provider === "http") return createHttpSms(config);
  if (config.provider === "twilio") return createTwilioSms(config);
  return config.provider === "aliyun" ? createAliyunSms(config) : createConsoleSms(show);
}

/**
 * The development provider, which sends nothing.
 *
 * @param show prints each message; pages show the code too
 */
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
 * A server of the operator. Each message is a JSON POST, and any 2xx status means that the server
 * will send it.
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

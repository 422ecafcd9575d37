/** The provider that is configured. */
import type { SmsConfig } from "../../config/config.ts";
import { createAliyunSms } from "./aliyun.ts";
import { createConsoleSms } from "./console.ts";
import { createHttpSms } from "./http.ts";
import { createNoSms } from "./none.ts";
import type { Sms } from "./sms.ts";
import { createTwilioSms } from "./twilio.ts";

/**
 * Makes it.
 *
 * @param config `undefined`: none is configured
 * @param show gets what the provider of development would send
 */
export function createSms(config: SmsConfig | undefined, show: (message: string) => void): Sms {
  if (config === undefined) return createNoSms();
  if (config.provider === "http") return createHttpSms(config);
  if (config.provider === "twilio") return createTwilioSms(config);
  return config.provider === "aliyun" ? createAliyunSms(config) : createConsoleSms(show);
}

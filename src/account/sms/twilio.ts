/**
 * Sends codes with Twilio Verify. The gateway generates the codes, so the service needs "custom
 * verification code" switched on.
 */
import type { TwilioSmsConfig } from "../../config/config.ts";
import type { Sms } from "./provider.ts";
import { createSmsPoster, refusedBy } from "./post.ts";

/** Maximum number of verifications that are stored until they are confirmed. */
const rememberedMax = 10_000;

/** Creates the provider. */
export function createTwilioSms(config: TwilioSmsConfig): Sms {
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

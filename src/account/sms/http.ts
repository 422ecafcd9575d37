/** A server of the operator's own: each message is a POST of JSON, and any 2xx is its promise to send it. */
import type { HttpSmsConfig } from "../../config/config.ts";
import { createSmsPoster, refusedBy } from "./post.ts";
import type { Sms } from "./sms.ts";

/** Makes it. */
export function createHttpSms({ url, token }: HttpSmsConfig): Sms {
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

/** The provider of development: it sends nothing. */
import type { Sms } from "./sms.ts";

/** Makes it. @param show gets each message; the pages show the code too */
export function createConsoleSms(show: (message: string) => void): Sms {
  return {
    isDevelopment: true,
    async send({ text }) {
      show(`development: an SMS would say: ${text}`);
    },
    confirmed() {},
    async close() {},
  };
}

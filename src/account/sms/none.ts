/** Where no provider is configured. */
import { ErrorCode, GatewayError } from "../../errors.ts";
import type { Sms } from "./sms.ts";

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

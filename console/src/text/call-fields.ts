/**
 * The fields of a call record that its details show as they are, with their names in every
 * language, in the order of the details.
 */
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";

const names = {
  path: { en: "Endpoint", zh: "接口" },
  vendor: { en: "Vendor", zh: "供应商" },
  stream: { en: "Streamed", zh: "流式" },
  requestId: { en: "Request ID", zh: "请求 ID" },
  callId: { en: "Call ID", zh: "调用 ID" },
  upstreamRequestId: { en: "Vendor's request ID", zh: "供应商请求 ID" },
  dropped: { en: "Ignored parameters", zh: "忽略的参数" },
} as const satisfies {
  readonly [Name in keyof CallRecord]?: Readonly<Record<"en" | "zh", string>>;
};

/** A field that the details show as it is. */
export type CallField = keyof typeof names;

/** The fields in their order. */
export const callFields = Object.keys(names) as readonly CallField[];

/** The names of the fields in a language. */
export function callFieldNames(language: "en" | "zh"): Readonly<Record<CallField, string>> {
  const inLanguage = callFields.map((field) => [field, names[field][language]] as const);
  return Object.fromEntries(inLanguage) as Record<CallField, string>;
}

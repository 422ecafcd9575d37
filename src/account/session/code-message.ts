/** Codes that were sent as messages of the contract, and the language to send them in. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type SentCode, SentCodeSchema } from "../../../gen/uas/account/v1/session_pb.ts";
import { codeSendsMax } from "../../config/sign-in-limits.ts";
import { ErrorCode, GatewayError } from "../../errors.ts";
import type { SentFacts } from "../code/codes.ts";
import { maskPhone } from "../code/phone.ts";

/** The message. */
export function sentMessage(phone: string, { expireTime, shown = "" }: SentFacts): SentCode {
  return create(SentCodeSchema, {
    maskedPhone: maskPhone(phone),
    expireTime: timestampFromDate(expireTime),
    resendSeconds: codeSendsMax.phone[0].withinMs / 1_000,
    developmentCode: shown,
  });
}

/** Reads a language; empty: none is said. @throws GatewayError INVALID_REQUEST */
export function parseLanguage(language: string): "" | "en" | "zh" {
  if (language === "" || language === "en" || language === "zh") return language;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, "language is en or zh, or empty", {
    param: "language",
  });
}

/** The RPC that sends codes for single actions. */
import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  CodeAction,
  SentCodeSchema,
  type SentCode,
} from "../../../gen/uas/account/v1/session_pb.ts";
import type { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { codeSendsMax } from "../../core/limits.ts";
import { requireSession, requireBrowserSession } from "../../core/browser-session.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { isUuid } from "../../core/uuid.ts";
import { invalid } from "../../core/validation.ts";
import type { SentFacts } from "../code/codes.ts";
import { purposeOf } from "../code/limits.ts";
import { parsePhone, maskPhone } from "../code/phone.ts";
import type { SignInRoom } from "../room.ts";
import { noSms } from "../sms/sms.ts";
import { requireUser } from "../user/store.ts";

/** Creates the RPC. */
export function createActionCodeRpc(
  room: SignInRoom,
): Pick<ServiceImpl<typeof SessionService>, "sendActionCode"> {
  const { rules } = room;
  return {
    async sendActionCode({ action, subjectId }, context) {
      const own = requireSession(context);
      if (!rules.hasCodes) throw noSms();
      checkSubject(action, subjectId);
      const user = await requireUser(room, own);
      if (user.phone == null) throw noPhone();
      const sent = await room.codes.send({
        purpose: purposeOf(action),
        subject: subjectId,
        phone: user.phone,
        binding: own.sessionId,
        // Only new numbers are restricted to the served countries; numbers accepted earlier remain
        // valid.
        country: parsePhone(user.phone, []).callingCode,
        ipAddress: requireBrowserSession(context).ipAddress,
        accountId: user.accountId,
        language: languageOf(user.language) || "en",
        isKnown: true,
        isWanted: true,
        isAwaited: true,
      });
      return { sent: sentMessage(user.phone, sent) };
    },
  };
}

/** Actions without a subject. */
const bare: ReadonlySet<CodeAction> = new Set([CodeAction.SET_PASSWORD, CodeAction.CHANGE_PHONE]);

/**
 * The action is required here and not in the contract, so that callers without a session get that
 * error first.
 */
function checkSubject(action: CodeAction, subjectId: string): void {
  if (action === CodeAction.UNSPECIFIED) {
    throw invalid("action", "action is required: name the action that the code allows");
  }
  if (bare.has(action) ? subjectId === "" : isUuid(subjectId)) return;
  throw invalid(
    "subject_id",
    "subject_id must be the id of the object that the action changes, or empty if there is none",
  );
}

function noPhone(): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "this user has no mobile number to send a code to: add one in the profile first",
  );
}

/** Converts a sent code to its message. */
export function sentMessage(phone: string, { expireTime, shown = "" }: SentFacts): SentCode {
  return create(SentCodeSchema, {
    maskedPhone: maskPhone(phone),
    expireTime: timestampFromDate(expireTime),
    resendDelay: durationFromMs(codeSendsMax.phone[0].withinMs),
    developmentCode: shown,
  });
}

/** A stored or sent language; empty means unspecified. */
export function languageOf(language: string): "" | "en" | "zh" {
  return language === "en" || language === "zh" ? language : "";
}

/** The RPC that sends codes for single actions. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  CodeAction,
  CodeActionSchema,
  SentCodeSchema,
  type SentCode,
} from "../../../gen/uas/account/v1/session_pb.ts";
import type { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { codeSendsMax } from "../../config/limits.ts";
import { requireSession, requireBrowserSession } from "../../core/browser-session.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { isUuid } from "../../core/uuid.ts";
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
      checkAction(action, subjectId);
      const user = await requireUser(room, own);
      if (user.phone == null) throw noPhone();
      const sent = await room.codes.send({
        purpose: purposeOf(action),
        subject: subjectId,
        phone: user.phone,
        binding: own.sessionId,
        // Only new numbers are restricted to the served countries; numbers accepted earlier remain valid.
        country: parsePhone(user.phone, []).callingCode,
        ipAddress: requireBrowserSession(context).ipAddress,
        accountId: user.accountId,
        language: parseLanguage(user.language) || "en",
        isWanted: true,
        isAwaited: true,
      });
      return { sent: sentMessage(user.phone, sent) };
    },
  };
}

/** Actions without a subject. */
const bare: ReadonlySet<CodeAction> = new Set([CodeAction.SET_PASSWORD, CodeAction.CHANGE_PHONE]);

const actions: ReadonlySet<number> = new Set(CodeActionSchema.values.map(({ number }) => number));

function checkAction(action: CodeAction, subjectId: string): void {
  const wrong = (param: string, message: string): GatewayError =>
    new GatewayError(ErrorCode.INVALID_REQUEST, message, { param });
  if (action === CodeAction.UNSPECIFIED || !actions.has(action)) {
    throw wrong("action", "action is required: say what the code is for");
  }
  if (bare.has(action) ? subjectId !== "" : !isUuid(subjectId)) {
    throw wrong(
      "subject_id",
      "subject_id must be the id that the action is about, or empty where it has none",
    );
  }
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
    resendSeconds: codeSendsMax.phone[0].withinMs / 1_000,
    developmentCode: shown,
  });
}

/** Reads a language; empty means unspecified. @throws GatewayError INVALID_REQUEST */
export function parseLanguage(language: string): "" | "en" | "zh" {
  if (language === "" || language === "en" || language === "zh") return language;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, "language is en or zh, or empty", {
    param: "language",
  });
}

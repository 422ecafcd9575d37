/** The RPC that sends codes for single actions. */
import type { ServiceImpl } from "@connectrpc/connect";
import { CodeAction, CodeActionSchema } from "../../../gen/uas/account/v1/session_pb.ts";
import type { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { ErrorCode, GatewayError } from "../../errors.ts";
import { isUuid } from "../../uuid.ts";
import { requireSession, requireVisit } from "../../visit.ts";
import { parsePhone } from "../code/phone.ts";
import { purposeOf } from "../code/purpose.ts";
import type { SignInRoom } from "../room.ts";
import { noSms } from "../sms/none.ts";
import { requireUser } from "../user/require-user.ts";
import { parseLanguage, sentMessage } from "./code-message.ts";

/** Makes it. */
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
        // Numbers that were once accepted are served on: only new ones are bound to the countries.
        country: parsePhone(user.phone, []).callingCode,
        ipAddress: requireVisit(context).ipAddress,
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

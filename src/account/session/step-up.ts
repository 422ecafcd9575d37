/** Actions that need a code of their own (R-KEY-3, R-HOOK-6): who has the session alone cannot do them. */
import { callerKey } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { type RequireStepUp, requireSession, requireVisit } from "../../core/browser-session.ts";
import { purposeOf } from "../code/limits.ts";
import type { SignInRoom } from "../room.ts";
import { requireUser } from "../user/store.ts";

/** Makes it. */
export function createStepUp({
  users,
  codes,
  sessions,
}: Pick<SignInRoom, "users" | "codes" | "sessions">): RequireStepUp {
  return async (calling, { action, subjectId, code, param = "code" }) => {
    const caller = calling.values.get(callerKey);
    if (caller?.kind === "operator" && caller.session === undefined) return;
    const own = requireSession(calling);
    if (code.trim() === "") throw noCode(param);
    const user = await requireUser({ users }, own);
    const purpose = purposeOf(action);
    // Without a number no code was sent, and none is right.
    const phone = user.phone ?? "";
    const binding = { purpose, subject: subjectId, phone, binding: own.sessionId };
    await (await codes.check(binding, code.trim(), param)).use();
    await sessions.rotate(requireVisit(calling), own.sessionId);
  };
}

function noCode(param: string): GatewayError {
  const text = `${param} is required: have one sent by SessionService.SendActionCode`;
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param });
}

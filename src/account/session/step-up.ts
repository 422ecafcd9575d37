/** Requires a code for actions that a session alone does not allow (R-KEY-3, R-HOOK-6). */
import {
  requireBrowserSession,
  requireSession,
  type RequireStepUp,
} from "../../core/browser-session.ts";
import { callerKey } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { purposeOf } from "../code/limits.ts";
import type { SignInRoom } from "../room.ts";
import { requireUser } from "../user/store.ts";

/** Creates the check. */
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
    // Without a number no code was sent, so none matches.
    const phone = user.phone ?? "";
    const binding = { purpose, subject: subjectId, phone, binding: own.sessionId };
    await (await codes.check(binding, code.trim(), param)).use();
    await sessions.rotate(requireBrowserSession(calling), own.sessionId);
  };
}

function noCode(param: string): GatewayError {
  const text = `${param} is required: request one with SessionService.SendActionCode`;
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param });
}

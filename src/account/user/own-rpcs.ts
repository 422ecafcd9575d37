/** The RPCs with which users change their own credentials. */
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import type { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import type { SessionRef } from "../../core/caller.ts";
import { readEmail } from "../email.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { membersOf } from "../../core/partial-update.ts";
import {
  type RpcContext,
  type RequireStepUp,
  requireSession,
  requireBrowserSession,
} from "../../core/browser-session.ts";
import { invalid } from "../../core/validation.ts";
import { parsePhone } from "../code/phone.ts";
import { CodePurpose } from "../code/limits.ts";
import type { SignInRoom } from "../room.ts";
import { languageOf, sentMessage } from "../session/action-code.ts";
import { noSms } from "../sms/sms.ts";
import { userMessage } from "./message.ts";
import { checkPassword, hashPassword, isPassword } from "./password.ts";
import { requireUser, type UserRow } from "./store.ts";

type Rpcs = ServiceImpl<typeof UserService>;

/** Creates the RPCs. */
export function createOwnUserRpcs(
  room: SignInRoom,
  requireStepUp: RequireStepUp,
): Pick<Rpcs, "updateUser" | "setPassword" | "sendPhoneCode" | "setPhone"> {
  const { users, codes, sessions, rules } = room;
  return {
    async updateUser({ user, updateMask }, context) {
      const { userId } = requireSession(context);
      const members = requiredMembers(updateMask);
      const changed = await users.change(userId, {
        ...(members.has("name") && { name: user?.name.trim() ?? "" }),
        ...(members.has("language") && { language: languageOf(user?.language ?? "") }),
      });
      return { user: userMessage(changed) };
    },

    async setPassword(request, context) {
      const own = requireSession(context);
      const user = await requireUser(room, own);
      const email = request.email === "" ? user.email : parseEmail(request.email);
      if (email == null) throw badEmail("email is required: there is none yet");
      checkPassword(request.password, email);
      await requireProof({ room, requireStepUp, context, user }, request);
      const passwordHash = await hashPassword(request.password);
      const changed = await users.change(user.id, { email, passwordHash });
      await sessions.endOthers(user.id, own.sessionId);
      return { user: userMessage(changed) };
    },

    async sendPhoneCode({ phone }, context) {
      const own = requireSession(context);
      if (!rules.hasCodes) throw noSms();
      const { number, callingCode } = parsePhone(phone, rules.countries);
      const user = await requireUser(room, own);
      const sent = await codes.send({
        ...phoneCode(number, own),
        country: callingCode,
        ipAddress: requireBrowserSession(context).ipAddress,
        accountId: user.accountId,
        language: languageOf(user.language) || "en",
        // The number may be anybody's.
        isKnown: false,
        isWanted: true,
        isAwaited: true,
      });
      return { sent: sentMessage(number, sent) };
    },

    async setPhone({ phone, code, currentCode }, context) {
      const own = requireSession(context);
      const { number } = parsePhone(phone, rules.countries);
      const user = await requireUser(room, own);
      const right = await codes.check(phoneCode(number, own), code.trim());
      if (user.phone != null && !own.isFreshLink) {
        const action = CodeAction.CHANGE_PHONE;
        const proof = { action, subjectId: "", code: currentCode, param: "current_code" };
        await requireStepUp(context, proof);
      }
      await right.use();
      return { user: userMessage(await users.change(user.id, { phone: number })) };
    },
  };
}

/** Required here and not in the contract: who has no session is told that first. @throws GatewayError INVALID_REQUEST */
function requiredMembers(mask: FieldMask | undefined): ReadonlySet<string> {
  const members = membersOf(mask);
  if (members.size > 0) return members;
  throw invalid("update_mask", "update_mask is required: name what to change, of name, language");
}

/** The binding of a code for a new number. */
function phoneCode(phone: string, { sessionId, userId }: SessionRef) {
  return { purpose: CodePurpose.SET_PHONE, subject: userId, phone, binding: sessionId };
}

interface ProofParts {
  readonly room: SignInRoom;
  readonly requireStepUp: RequireStepUp;
  readonly context: RpcContext;
  readonly user: UserRow;
}

/** Requires proof that the user changes the password, and not somebody who found the browser open. */
async function requireProof(
  { room, requireStepUp, context, user }: ProofParts,
  { currentPassword, code }: { readonly currentPassword: string; readonly code: string },
): Promise<void> {
  const { isFreshLink, sessionId } = requireSession(context);
  if (isFreshLink || (user.passwordHash == null && user.phone == null)) return;
  if (code !== "") {
    return requireStepUp(context, { action: CodeAction.SET_PASSWORD, subjectId: "", code });
  }
  const attempt = {
    subject: `password ${user.email}`,
    ipAddress: requireBrowserSession(context).ipAddress,
    knownAs: `session ${sessionId}`,
  };
  const forgive = await room.failures.begin(attempt);
  if (await isPassword(currentPassword, user.passwordHash ?? null)) return forgive();
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "current_password is wrong: send it, or a code for SET_PASSWORD",
    { param: "current_password" },
  );
}

function parseEmail(text: string): string {
  const email = readEmail(text);
  if (email !== undefined) return email;
  throw badEmail("email is no e-mail address: write it as name@example.com");
}

function badEmail(message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "email" });
}

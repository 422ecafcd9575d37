/** The RPCs with which users set up and remove an authenticator. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import {
  requireSession,
  requireBrowserSession,
  type RpcContext,
} from "../../core/browser-session.ts";
import type { SignInRoom } from "../room.ts";
import { userMessage } from "./message.ts";
import { requireUser } from "./store.ts";
import { totpContext } from "./proof.ts";
import { newTotpSecret, totpUri } from "./totp.ts";

type Rpcs = ServiceImpl<typeof UserService>;

/** Creates the RPCs. */
export function createTotpRpcs(
  room: SignInRoom,
): Pick<Rpcs, "startTotp" | "confirmTotp" | "removeTotp"> {
  const { users, sessions, sealing, checkTotp } = room;
  return {
    async startTotp(_request, context) {
      const user = await requireUser(room, requireSession(context));
      if (user.totp != null) throw refused("there is an authenticator already: remove it first");
      const secret = newTotpSecret();
      const sealed = sealing().seal(user.accountId, totpContext(user.id), secret);
      await users.change(user.id, { totpPending: sealed });
      return { secret, uri: totpUri(secret, user.email ?? (user.name || user.id)) };
    },

    async confirmTotp({ code }, context) {
      const own = requireSession(context);
      const user = await requireUser(room, own);
      const { id, accountId, totpPending: totp } = user;
      if (totp == null) throw refused("no authenticator is being set up: start it");
      await checkTotp({ id, accountId, totp }, code, sessionFrom(context));
      const changed = await users.change(id, { totp, totpPending: null });
      await sessions.endOthers(user.id, own.sessionId);
      return { user: userMessage(changed) };
    },

    async removeTotp({ code }, context) {
      const own = requireSession(context);
      const user = await requireUser(room, own);
      if (!own.isFreshLink) await checkTotp(user, code, sessionFrom(context));
      return { user: userMessage(await users.change(user.id, { totp: null, totpPending: null })) };
    },
  };
}

/** The session as a source of codes: strangers who try to sign in do not count against it. */
function sessionFrom(context: RpcContext) {
  const { ipAddress } = requireBrowserSession(context);
  return { ipAddress, knownAs: `session ${requireSession(context).sessionId}` };
}

function refused(message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message);
}

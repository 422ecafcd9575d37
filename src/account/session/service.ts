/** The RPCs of sessions. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { EntityManager } from "@mikro-orm/postgresql";
import type { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import {
  notSignedIn,
  requireSession,
  requireBrowserSession,
  sessionOf,
  type RpcContext,
} from "../../core/browser-session.ts";
import { callerKey, type SessionRef } from "../../core/caller.ts";
import { recordAction } from "../../core/operator-log.ts";
import { cutPage, readPage } from "../../core/pagination.ts";
import { isUuid } from "../../core/uuid.ts";
import type { SignInRoom } from "../room.ts";
import { userMessage } from "../user/message.ts";
import { requireUser, noSuchUser } from "../user/store.ts";
import { createActionCodeRpc } from "./action-code.ts";
import { createSignInRpcs } from "./sign-in.ts";
import { sessionMessage } from "./store.ts";

/** Implements `uas.account.v1.SessionService`. */
export function createSessionService(room: SignInRoom): ServiceImpl<typeof SessionService> {
  return { ...createSignInRpcs(room), ...createSessionRpcs(room), ...createActionCodeRpc(room) };
}

type Rpcs = ServiceImpl<typeof SessionService>;

/** Creates the RPCs about existing sessions. */
function createSessionRpcs(room: SignInRoom): Pick<Rpcs, "signOut" | "getSession" | ListRpc> {
  const { sessions, rules } = room;
  return {
    ...createListRpcs(room),

    async signOut(_request, context) {
      const { sessionId, userId } = requireSession(context);
      await sessions.end(sessionId, userId);
      requireBrowserSession(context).keep(undefined);
      return {};
    },

    async getSession(_request, context) {
      const ref = requireSession(context);
      const [user, session] = await Promise.all([
        requireUser(room, ref),
        sessions.get(ref.sessionId),
      ]);
      if (session === undefined) throw notSignedIn();
      return {
        user: userMessage(user),
        session: sessionMessage(session, ref.sessionId),
        account: await room.accountOf(context.values.get(callerKey), ref.accountId),
        canRevealKeys: rules.canRevealKeys && rules.hasCodes,
      };
    },
  };
}

type ListRpc = "listSessions" | "revokeSession" | "revokeOtherSessions";

function createListRpcs({ sessions }: SignInRoom): Pick<Rpcs, ListRpc> {
  return {
    async listSessions(request, context) {
      const page = readPage(request, { isKey: isUuid });
      const own = ownSession(context);
      const userId = request.userId || own?.userId || "";
      if (!isUuid(userId) || (userId !== own?.userId && !isOperator(context))) throw noSuchUser();
      const rows = await sessions.list({ userId, after: page.after, limit: page.limit + 1 });
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { sessions: items.map((row) => sessionMessage(row, own?.sessionId)), nextPageToken };
    },

    async revokeSession({ sessionId }, context) {
      const own = ownSession(context);
      if (!isUuid(sessionId)) return {};
      if (own !== undefined && !isOperator(context)) await sessions.end(sessionId, own.userId);
      else await sessions.endAny(sessionId, notedEnd(context, sessionId));
      if (sessionId === own?.sessionId) requireBrowserSession(context).keep(undefined);
      return {};
    },

    async revokeOtherSessions(_request, context) {
      const { userId, sessionId } = requireSession(context);
      return { revokedCount: await sessions.endOthers(userId, sessionId) };
    },
  };
}

/** Writes down that an operator ends somebody's session. */
function notedEnd({ values }: RpcContext, sessionId: string) {
  return (em: EntityManager, userId: string): Promise<void> => {
    const action = { action: "session.revoke", subject: sessionId, before: { userId } };
    return recordAction(em, values, action);
  };
}

function isOperator({ values }: RpcContext): boolean {
  return values.get(callerKey)?.kind === "operator";
}

/** The calling session; only operators may have none. */
function ownSession(context: RpcContext): SessionRef | undefined {
  const session = sessionOf(context.values.get(callerKey));
  return session ?? (isOperator(context) ? undefined : requireSession(context));
}

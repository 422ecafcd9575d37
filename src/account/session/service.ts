/** The RPCs for sign-in and for sessions. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { EntityManager } from "@mikro-orm/postgresql";
import { SignInMethod } from "../../../gen/uas/account/v1/session_pb.ts";
import type { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { browserSessionMs } from "../../core/limits.ts";
import {
  type BrowserSession,
  notSignedIn,
  requireBrowserSession,
  requireSession,
  type RpcContext,
  sessionOf,
} from "../../core/browser-session.ts";
import { callerKey, type SessionRef } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { recordAction } from "../../observe/operator-log.ts";
import { cutPage, readPage } from "../../core/pagination.ts";
import { isUuid } from "../../core/uuid.ts";
import { CodePurpose } from "../code/limits.ts";
import { maskPhone, parsePhone } from "../code/phone.ts";
import type { SignInRoom } from "../room.ts";
import { noSms } from "../sms/sms.ts";
import { userMessage } from "../user/message.ts";
import { isPassword } from "../user/password.ts";
import { noSuchUser, requireUser, type UserRow } from "../user/store.ts";
import { createActionCodeRpc, languageOf, sentMessage } from "./action-code.ts";
import { digestToken, isToken, newToken, sessionMessage } from "./store.ts";

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

/** Records that an operator ended a user's session. */
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

/** Creates the RPCs. */
function createSignInRpcs(
  room: SignInRoom,
): Pick<Rpcs, "getSignInOptions" | CodeRpc | "signInWithPassword" | "signInWithLink"> {
  const { users, failures, links, rules } = room;
  return {
    ...createCodeRpcs(room),

    getSignInOptions() {
      const { hasCodes, countries, hasSignUp, isDevelopment } = rules;
      return { hasCodes, countries: [...countries], hasSignUp, isDevelopment };
    },

    async signInWithPassword({ email, password, totpCode }, context) {
      const browser = requireBrowserSession(context);
      const address = email.trim().toLowerCase();
      const user = address.length > 320 ? undefined : await users.byEmail(address);
      const from = fromOf(room, browser, user);
      const forgive = await failures.begin({ subject: `password ${address}`, ...from });
      const isRight = await isPassword(password, user?.passwordHash ?? null);
      if (!isRight || user === undefined) {
        throw refused("wrong e-mail address or password: check both");
      }
      await forgive();
      await room.checkTotp(user, totpCode, from);
      return open(room, user, context, SignInMethod.PASSWORD);
    },

    async signInWithLink({ token }, context) {
      requireBrowserSession(context);
      const userId = await links.use(token);
      const user = userId === undefined ? undefined : await users.get(userId);
      if (user === undefined) {
        throw refused(
          "the link was used or has expired: ask an operator for another one (`uas console link`)",
        );
      }
      return open(room, user, context, SignInMethod.LINK);
    },
  };
}

type CodeRpc = "sendSignInCode" | "signInWithCode";

function createCodeRpcs(room: SignInRoom): Pick<Rpcs, CodeRpc> {
  const { users, codes, rules } = room;
  return {
    async sendSignInCode(request, context) {
      const browser = requireBrowserSession(context);
      if (!rules.hasCodes) throw noSms();
      const { number, callingCode } = parsePhone(request.phone, rules.countries);
      const user = await users.byPhone(number);
      const isWanted = rules.hasSignUp || user !== undefined;
      const sent = codes.send({
        ...signInCode(number, browserOf(browser)),
        country: callingCode,
        ipAddress: browser.ipAddress,
        accountId: undefined,
        language: languageOf(request.language) || "en",
        isKnown: fromOf(room, browser, user).knownAs !== undefined,
        isWanted,
        // Otherwise the provider's response time would reveal whether a user has the number.
        isAwaited: rules.hasSignUp,
      });
      return { sent: sentMessage(number, await sent) };
    },

    async signInWithCode(request, context) {
      const browser = requireBrowserSession(context);
      const { number } = parsePhone(request.phone, rules.countries);
      const right = await codes.check(signInCode(number, browserOf(browser)), request.code.trim());
      const found = await users.byPhone(number);
      if (found !== undefined) await requireSecond(room, found, request.totpCode, browser);
      await right.use();
      const user = found ?? (await addCustomer(room, number));
      return { ...(await open(room, user, context, SignInMethod.CODE)), isNew: !found };
    },
  };
}

/**
 * The origin of a sign-in attempt: failures of strangers do not count against the user's browsers.
 */
function fromOf({ known }: SignInRoom, browser: BrowserSession, user: UserRow | undefined) {
  const browserId = user && known.idOf(browser, user);
  const knownAs = browserId === undefined ? undefined : `browser ${browserId}`;
  return { ipAddress: browser.ipAddress, knownAs };
}

/** The binding of a sign-in code. */
function signInCode(phone: string, binding: string) {
  return { purpose: CodePurpose.SIGN_IN, subject: "", phone, binding };
}

/** Identifies the browser by its token, and gives it one if it has none. */
function browserOf(visit: BrowserSession): string {
  const token = visit.token !== undefined && isToken(visit.token) ? visit.token : newToken();
  if (token !== visit.token) visit.keep(token, browserSessionMs);
  return digestToken(token).toString("hex");
}

/**
 * Checks the second factor. SMS alone is not enough for operators, since phone numbers can be
 * stolen.
 */
async function requireSecond(
  room: SignInRoom,
  user: UserRow,
  totpCode: string,
  visit: BrowserSession,
): Promise<void> {
  if (user.role === UserRole.OPERATOR && user.totp == null) {
    throw refused(
      "operators sign in with e-mail and password, or with a link of `uas console link`; a code by SMS works only with an authenticator app",
    );
  }
  await room.checkTotp(user, totpCode, fromOf(room, visit, user));
}

async function addCustomer({ users, rules }: SignInRoom, phone: string): Promise<UserRow> {
  if (!rules.hasSignUp) throw refused("no user has this number: ask the operator to create one");
  const masked = maskPhone(phone);
  const user = {
    accountId: undefined,
    accountName: masked,
    name: "",
    role: UserRole.MEMBER,
    phone,
  };
  return users.add(user);
}

async function open(
  { sessions, known, onSignIn }: SignInRoom,
  user: UserRow,
  context: HandlerContext,
  method: SignInMethod,
) {
  const browser = requireBrowserSession(context);
  const session = await sessions.open(browser, user, method);
  known.remember(browser, user);
  onSignIn(method, user.id, browser.ipAddress);
  return { user: userMessage(user), session: sessionMessage(session, session.id) };
}

function refused(message: string): GatewayError {
  return new GatewayError(ErrorCode.UNAUTHENTICATED, message);
}

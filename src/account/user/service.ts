/** The RPCs of users: their credentials, their authenticator, and the management by operators. */
import { type FieldMask, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import type { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import {
  requireBrowserSession,
  requireSession,
  type RequireStepUp,
  type RpcContext,
} from "../../core/browser-session.ts";
import { callerKey, type SessionRef } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { recordAction } from "../../observe/operator-log.ts";
import { cutPage, readPage } from "../../core/pagination.ts";
import { membersOf } from "../../core/update-mask.ts";
import { isUuid } from "../../core/uuid.ts";
import { invalid } from "../../core/validation.ts";
import { CodePurpose } from "../code/limits.ts";
import { maskPhone, parsePhone } from "../code/phone.ts";
import { readEmail } from "../email.ts";
import { noSuchAccount, type SignInRoom } from "../room.ts";
import { languageOf, sentMessage } from "../session/action-code.ts";
import { noSms } from "../sms/sms.ts";
import { userMessage } from "./message.ts";
import { checkPassword, hashPassword, isPassword } from "./password.ts";
import { totpContext } from "./proof.ts";
import { type InTransaction, noSuchUser, requireUser, type UserRow } from "./store.ts";
import { newTotpSecret, totpUri } from "./totp.ts";

/** Options of {@link createUserService} in addition to the room. */
interface UserServiceOptions {
  readonly room: SignInRoom;
  readonly requireStepUp: RequireStepUp;
  readonly accountExists: (accountId: string) => Promise<boolean>;
}

/** Implements `uas.account.v1.UserService`. */
export function createUserService(options: UserServiceOptions): ServiceImpl<typeof UserService> {
  const { room, requireStepUp, accountExists } = options;
  return {
    ...createUserManagement(room, accountExists),
    ...createOwnUserRpcs(room, requireStepUp),
    ...createTotpRpcs(room),
  };
}

type Rpcs = ServiceImpl<typeof UserService>;

/** Creates the RPCs. */
function createOwnUserRpcs(
  room: SignInRoom,
  requireStepUp: RequireStepUp,
): Pick<Rpcs, "updateUser" | "setPassword" | "sendPhoneCode" | "setPhone"> {
  const { users, codes, sessions, known, rules } = room;
  return {
    async updateUser({ user, updateMask }, context) {
      const { userId } = requireSession(context);
      const members = requiredMembers(updateMask);
      if (user !== undefined && user.userId !== "" && user.userId !== userId) throw notOwnUser();
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
      if (email == null) throw badEmail("email is required: the user has none yet");
      checkPassword(request.password, email);
      await requireProof({ room, requireStepUp, context, user }, request);
      const passwordHash = await hashPassword(request.password);
      const changed = await users.change(user.id, { email, passwordHash });
      known.remember(requireBrowserSession(context), changed);
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
        // The number may belong to another person.
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

/**
 * The mask is required here and not in the contract, so that callers without a session get that
 * error first.
 *
 * @throws GatewayError INVALID_REQUEST
 */
function requiredMembers(mask: FieldMask | undefined): ReadonlySet<string> {
  const members = membersOf(mask);
  if (members.size > 0) return members;
  throw invalid(
    "update_mask",
    "update_mask is required: list the fields to change: name, language",
  );
}

function notOwnUser(): GatewayError {
  return new GatewayError(
    ErrorCode.ACCESS_DENIED,
    "UpdateUser changes the user who calls: leave user_id out, or send your own",
    { param: "user.user_id" },
  );
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

/**
 * Requires proof that the user changes the password, and not another person at the open browser.
 */
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
    "current_password is wrong: send the current password, or a code for SET_PASSWORD",
    { param: "current_password" },
  );
}

function parseEmail(text: string): string {
  const email = readEmail(text);
  if (email !== undefined) return email;
  throw badEmail("email is not an e-mail address: write it as name@example.com");
}

function badEmail(message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "email" });
}

/** Name of an operator's account. */
const operatorAccount = "operator";

/** Creates the RPCs. @param accountExists whether an account exists */
function createUserManagement(
  room: SignInRoom,
  accountExists: (accountId: string) => Promise<boolean>,
): Pick<Rpcs, "listUsers" | "createUser" | "deleteUser" | "createSignInLink"> {
  const { users, links } = room;
  const requireAccount = async (accountId: string): Promise<string> => {
    if (!(await accountExists(accountId))) throw noSuchAccount();
    return accountId;
  };
  const operatorOf = async (values: ContextValues, accountId: string): Promise<UserRow> => {
    const first = await users.firstOperator();
    if (first !== undefined) return first;
    const fresh = {
      accountId: accountId === "" ? undefined : await requireAccount(accountId),
      accountName: operatorAccount,
      name: operatorAccount,
      role: UserRole.OPERATOR,
      phone: null,
    };
    return users.add(fresh, noted(values, "user.create"));
  };
  return {
    async listUsers(request) {
      const page = readPage(request, { isKey: isUuid });
      const accountId = request.accountId === "" ? undefined : request.accountId;
      if (accountId !== undefined) await requireAccount(accountId);
      const rows = await users.list({ accountId, after: page.after, limit: page.limit + 1 });
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { users: items.map(userMessage), nextPageToken };
    },

    async createUser({ accountId, name, role, phone }, { values }) {
      if (role === UserRole.OPERATOR) refuseServices(values);
      const fresh = {
        accountId: await requireAccount(accountId),
        accountName: "",
        name: name.trim(),
        role: role || UserRole.MEMBER,
        phone: phone === "" ? null : parsePhone(phone, []).number,
      };
      return { user: userMessage(await users.add(fresh, noted(values, "user.create"))) };
    },

    async deleteUser({ userId }, { values }) {
      const also = noted(values, "user.delete");
      const { role } = await findUser(room, userId);
      if (role === UserRole.OPERATOR) refuseServices(values);
      if (!isUuid(userId) || !(await users.remove(userId, also))) throw noSuchUser();
      return {};
    },

    async createSignInLink({ userId, accountId }, { values }) {
      if (userId === "") refuseServices(values);
      const user =
        userId === "" ? await operatorOf(values, accountId) : await findUser(room, userId);
      if (user.role === UserRole.OPERATOR) refuseServices(values);
      const note = noted(values, "user.link");
      const { token, expireTime } = await links.create(user.id, (em) => note(em, user));
      return { token, expireTime: timestampFromDate(expireTime), user: userMessage(user) };
    },
  };
}

/**
 * Keeps service credentials from signing in as an operator, who has every permission, and from
 * deleting operators.
 *
 * @throws GatewayError ACCESS_DENIED
 */
function refuseServices(values: ContextValues): void {
  const caller = values.get(callerKey);
  if (caller?.kind !== "operator" || caller.permissions === undefined) return;
  const text = "Access denied: a service credential cannot create, delete or sign in operators";
  throw new GatewayError(ErrorCode.ACCESS_DENIED, text);
}

/** The operator-log entry of an action on a user; the number is masked. */
function noted(
  values: ContextValues,
  action: "user.create" | "user.delete" | "user.link",
): InTransaction {
  return async (em, { id, accountId, name, role, phone, email }) => {
    const masked = phone == null ? null : maskPhone(phone);
    const facts = { name, role: roleWords[role], phone: masked, email };
    const about = action === "user.delete" ? { before: facts } : { after: facts };
    await recordAction(em, values, { action, accountId, subject: id, ...about });
  };
}

const roleWords: Readonly<Record<number, string>> = {
  [UserRole.MEMBER]: "member",
  [UserRole.OPERATOR]: "operator",
};

async function findUser({ users }: SignInRoom, userId: string): Promise<UserRow> {
  const user = isUuid(userId) ? await users.get(userId) : undefined;
  if (user === undefined) throw noSuchUser();
  return user;
}

/** Creates the RPCs. */
function createTotpRpcs(room: SignInRoom): Pick<Rpcs, "startTotp" | "confirmTotp" | "removeTotp"> {
  const { users, sessions, known, sealing, checkTotp } = room;
  return {
    async startTotp(_request, context) {
      const user = await requireUser(room, requireSession(context));
      if (user.totp != null)
        throw refused("the user already has an authenticator: remove it first");
      const secret = newTotpSecret();
      const sealed = sealing().seal(user.accountId, totpContext(user.id), secret);
      await users.change(user.id, { totpPending: sealed });
      return { secret, uri: totpUri(secret, user.email ?? (user.name || user.id)) };
    },

    async confirmTotp({ code }, context) {
      const own = requireSession(context);
      const user = await requireUser(room, own);
      const { id, accountId, totpPending: totp } = user;
      if (totp == null) throw refused("no authenticator is being set up: start the setup first");
      await checkTotp({ id, accountId, totp }, code, sessionFrom(context));
      const changed = await users.change(id, { totp, totpPending: null });
      known.remember(requireBrowserSession(context), changed);
      await sessions.endOthers(user.id, own.sessionId);
      return { user: userMessage(changed) };
    },

    async removeTotp({ code }, context) {
      const own = requireSession(context);
      const user = await requireUser(room, own);
      if (!own.isFreshLink) await checkTotp(user, code, sessionFrom(context));
      const changed = await users.change(user.id, { totp: null, totpPending: null });
      known.remember(requireBrowserSession(context), changed);
      return { user: userMessage(changed) };
    },
  };
}

/** The session as a source of codes: failures of strangers do not count against it. */
function sessionFrom(context: RpcContext) {
  const { ipAddress } = requireBrowserSession(context);
  return { ipAddress, knownAs: `session ${requireSession(context).sessionId}` };
}

function refused(message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message);
}

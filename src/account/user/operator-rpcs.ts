/** The RPCs with which operators manage users. */
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import type { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { recordAction } from "../../core/operator-log.ts";
import { cutPage, readPage } from "../../core/pagination.ts";
import { isUuid } from "../../core/uuid.ts";
import { noSuchAccount, type SignInRoom } from "../room.ts";
import { maskPhone, parsePhone } from "../code/phone.ts";
import { userMessage } from "./message.ts";
import { type InTransaction, noSuchUser, type UserRow } from "./store.ts";

type Rpcs = ServiceImpl<typeof UserService>;

/** Name of an operator's own account. */
const operatorAccount = "operator";

/** Creates the RPCs. @param accountExists whether an account exists */
export function createUserManagement(
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
      if (!isUuid(userId) || !(await users.remove(userId, also))) throw noSuchUser();
      return {};
    },

    async createSignInLink({ userId, accountId }, { values }) {
      const user =
        userId === "" ? await operatorOf(values, accountId) : await findUser(room, userId);
      const note = noted(values, "user.link");
      const { token, expireTime } = await links.create(user.id, (em) => note(em, user));
      return { token, expireTime: timestampFromDate(expireTime), user: userMessage(user) };
    },
  };
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

/** The RPCs by which operators manage users. */
import type { ServiceImpl } from "@connectrpc/connect";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import type { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { ErrorCode, GatewayError } from "../../errors.ts";
import { cutPage, readPage } from "../../page-token.ts";
import { isUuid } from "../../uuid.ts";
import { noSuchAccount } from "../access.ts";
import { parsePhone } from "../code/phone.ts";
import { parseDisplayName } from "../display-name.ts";
import type { SignInRoom } from "../room.ts";
import { userMessage } from "./message.ts";
import { noSuchUser, type UserRow } from "./store.ts";

type Rpcs = ServiceImpl<typeof UserService>;

/** What an operator's own account is called. */
const operatorAccount = "operator";

/** Makes them. @param accountExists whether there is such an account */
export function createUserManagement(
  room: SignInRoom,
  accountExists: (accountId: string) => Promise<boolean>,
): Pick<Rpcs, "listUsers" | "createUser" | "deleteUser" | "createSignInLink"> {
  const { users, links } = room;
  const requireAccount = async (accountId: string): Promise<string> => {
    if (!(await accountExists(accountId))) throw noSuchAccount();
    return accountId;
  };
  const operatorOf = async (accountId: string): Promise<UserRow> => {
    const first = await users.firstOperator();
    if (first !== undefined) return first;
    return users.add({
      accountId: accountId === "" ? undefined : await requireAccount(accountId),
      accountName: operatorAccount,
      name: operatorAccount,
      role: UserRole.OPERATOR,
      phone: null,
    });
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

    async createUser({ accountId, name, role, phone }) {
      const user = await users.add({
        accountId: await requireAccount(accountId),
        accountName: "",
        name: parseDisplayName(name, 0),
        role: parseRole(role),
        phone: phone === "" ? null : parsePhone(phone, []).number,
      });
      return { user: userMessage(user) };
    },

    async deleteUser({ userId }) {
      if (!isUuid(userId) || !(await users.remove(userId))) throw noSuchUser();
      return {};
    },

    async createSignInLink({ userId, accountId }) {
      const user = userId === "" ? await operatorOf(accountId) : await findUser(room, userId);
      const { token, expireTime } = await links.create(user.id);
      return { token, expireTime: timestampFromDate(expireTime), user: userMessage(user) };
    },
  };
}

async function findUser({ users }: SignInRoom, userId: string): Promise<UserRow> {
  const user = isUuid(userId) ? await users.get(userId) : undefined;
  if (user === undefined) throw noSuchUser();
  return user;
}

function parseRole(role: UserRole): UserRole {
  if (role === UserRole.UNSPECIFIED) return UserRole.MEMBER;
  if (role === UserRole.MEMBER || role === UserRole.OPERATOR) return role;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, "role is MEMBER or OPERATOR", {
    param: "role",
  });
}

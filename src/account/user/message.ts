import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type User, type UserRole, UserSchema } from "../../../gen/uas/account/v1/user_pb.ts";
import { maskPhone } from "../code/phone.ts";
import type { UserRow } from "./store.ts";

/** Converts a user, without secrets; phone numbers are masked. */
export function userMessage(row: UserRow): User {
  return create(UserSchema, {
    userId: row.id,
    accountId: row.accountId,
    name: row.name,
    role: row.role as UserRole,
    maskedPhone: row.phone == null ? "" : maskPhone(row.phone),
    email: row.email ?? "",
    hasPassword: row.passwordHash != null,
    hasTotp: row.totp != null,
    language: row.language,
    createTime: timestampFromDate(row.createTime),
    ...(row.signInTime && { signInTime: timestampFromDate(row.signInTime) }),
  });
}

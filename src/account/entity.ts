import { defineEntity, p } from "@mikro-orm/core";

/**
 * An account owns API keys and one balance. Its money is in the tables of billing. `state`:
 * AccountState. `discountBp`: basis points. `priceList`: empty if it has the usual prices.
 * `lowBalanceThreshold`: nano-USD. A trigger sets `changeTime`.
 */
export const AccountEntity = defineEntity({
  name: "AccountEntity",
  tableName: "account",
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    state: p.smallint().default(1),
    suspendReason: p.text().nullable(),
    suspendTime: p.datetime().columnType("timestamptz").nullable(),
    discountBp: p.integer().default(0),
    priceList: p.text().default(""),
    lowBalanceThreshold: p.bigint().nullable(),
    alertUrl: p.text().nullable(),
    alertEmails: p.array().columnType("text[]").nullable(),
    rpm: p.integer().nullable(),
    tpm: p.integer().nullable(),
    concurrency: p.integer().nullable(),
    limitWaitMs: p.integer().nullable(),
    changeTime: p.datetime().columnType("timestamptz").defaultRaw("now()").lazy(),
  },
  indexes: [{ name: "account_change_time_index", properties: ["changeTime"] }],
  checks: [
    { name: "account_state_check", expression: "state >= 1 and state <= 4" },
    {
      name: "account_discount_bp_check",
      expression: "discount_bp >= 0 and discount_bp <= 10000",
    },
    { name: "account_limits_check", expression: "rpm > 0 and tpm > 0 and concurrency > 0" },
    {
      name: "account_limit_wait_ms_check",
      expression: "limit_wait_ms >= 0 and limit_wait_ms <= 30000",
    },
    { name: "account_low_balance_threshold_check", expression: "low_balance_threshold > 0" },
  ],
});

/** A console user. `role`: UserRole. `totp`, `totpPending`: encrypted secrets of authenticators. */
export const UserEntity = defineEntity({
  name: "UserEntity",
  tableName: "console_user",
  properties: {
    id: p.uuid().primary(),
    accountId: p.uuid(),
    role: p.smallint().default(1),
    name: p.text().default(""),
    phone: p.text().nullable().unique("console_user_phone_unique"),
    email: p.text().nullable().unique("console_user_email_unique"),
    passwordHash: p.text().nullable().lazy(),
    totp: p.blob().nullable().lazy(),
    totpPending: p.blob().nullable().lazy(),
    totpStep: p.bigint().nullable(),
    language: p.text().default(""),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    signInTime: p.datetime().columnType("timestamptz").nullable(),
  },
  indexes: [{ name: "console_user_account_id_id_index", properties: ["accountId", "id"] }],
  checks: [
    { name: "console_user_role_check", expression: "role >= 1 and role <= 2" },
    {
      name: "console_user_password_hash_check",
      expression: "password_hash is null or email is not null",
    },
  ],
});

/** A signed-in browser. `digest`: hash of the token in its cookie. `method`: SignInMethod. */
export const SessionEntity = defineEntity({
  name: "SessionEntity",
  tableName: "console_session",
  properties: {
    id: p.uuid().primary(),
    userId: p.uuid(),
    digest: p.blob().lazy().unique("console_session_digest_unique"),
    previous: p.blob().nullable().lazy(),
    rotateTime: p.datetime().columnType("timestamptz").nullable(),
    method: p.smallint(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    seenTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    expireTime: p.datetime().columnType("timestamptz"),
    ipAddress: p.text(),
    userAgent: p.text(),
  },
  indexes: [
    { name: "console_session_user_id_id_index", properties: ["userId", "id"] },
    { name: "console_session_previous_index", properties: ["previous"] },
  ],
  checks: [{ name: "console_session_method_check", expression: "method >= 1 and method <= 3" }],
});

/**
 * A code that was sent, and the attempts at it. The columns are explained in
 * `src/db/migration/0001-baseline/account.sql`.
 */
export const OneTimeCodeEntity = defineEntity({
  name: "OneTimeCodeEntity",
  tableName: "one_time_code",
  properties: {
    id: p.uuid().primary(),
    purpose: p.smallint(),
    wrong: p.smallint().default(0),
    subject: p.text(),
    binding: p.text(),
    phone: p.text(),
    country: p.text(),
    ipAddress: p.text(),
    accountId: p.uuid().nullable(),
    mac: p.blob().nullable().lazy(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    expireTime: p.datetime().columnType("timestamptz"),
    useTime: p.datetime().columnType("timestamptz").nullable(),
    isKnown: p.boolean().default(false),
  },
  indexes: [
    { name: "one_time_code_phone_index", properties: ["phone", "createTime"] },
    { name: "one_time_code_account_id_index", properties: ["accountId", "createTime"] },
    { name: "one_time_code_ip_address_index", properties: ["ipAddress", "createTime"] },
    { name: "one_time_code_country_index", properties: ["country", "createTime"] },
    { name: "one_time_code_create_time_index", properties: ["createTime"] },
  ],
  checks: [{ name: "one_time_code_wrong_check", expression: "wrong >= 0 and wrong <= 5" }],
});

/** A link that signs a user in, once. */
export const SignInLinkEntity = defineEntity({
  name: "SignInLinkEntity",
  tableName: "sign_in_link",
  properties: {
    userId: p.uuid().primary(),
    digest: p.blob().lazy().unique("sign_in_link_digest_unique"),
    expireTime: p.datetime().columnType("timestamptz"),
  },
});

/** Wrong codes of an authenticator, and of one-time codes of a number, over its life. */
export const CodeGuessEntity = defineEntity({
  name: "CodeGuessEntity",
  tableName: "code_guess",
  properties: {
    subject: p.text().primary(),
    wrong: p.integer(),
    lastTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
  },
});

/** A wrong password, authenticator code or link. */
export const SignInFailureEntity = defineEntity({
  name: "SignInFailureEntity",
  tableName: "sign_in_failure",
  properties: {
    id: p.uuid().primary(),
    subject: p.text(),
    ipAddress: p.text(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
  },
  indexes: [
    { name: "sign_in_failure_subject_index", properties: ["subject", "createTime"] },
    { name: "sign_in_failure_ip_address_index", properties: ["ipAddress", "createTime"] },
    { name: "sign_in_failure_create_time_index", properties: ["createTime"] },
  ],
});

export const accountEntities = [
  AccountEntity,
  UserEntity,
  SessionEntity,
  OneTimeCodeEntity,
  SignInLinkEntity,
  CodeGuessEntity,
  SignInFailureEntity,
] as const;

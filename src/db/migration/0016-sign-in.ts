/** The tables of signing in to the console: users, sessions, codes, links, failures. */
import { Migration } from "@mikro-orm/migrations";

/**
 * role: uas.account.v1.UserRole. phone: in E.164 form. email: in lower case. totp, totp_pending: the sealed secret of
 * the authenticator that counts, and of one that is being set up; totp_step: the last 30 seconds whose code was taken.
 */
const user = `
create table "console_user" (
  "id" uuid not null,
  "account_id" uuid not null,
  "role" smallint not null default 1,
  "name" text not null default '',
  "phone" text null,
  "email" text null,
  "password_hash" text null,
  "totp" bytea null,
  "totp_pending" bytea null,
  "totp_step" bigint null,
  "language" text not null default '',
  "create_time" timestamptz not null default now(),
  "sign_in_time" timestamptz null,
  constraint "console_user_pkey" primary key ("id"),
  constraint "console_user_phone_unique" unique ("phone"),
  constraint "console_user_email_unique" unique ("email"),
  constraint "console_user_role_check" check (role >= 1 and role <= 2),
  constraint "console_user_password_hash_check" check (password_hash is null or email is not null)
);
create index "console_user_account_id_id_index" on "console_user" ("account_id", "id")`;

/**
 * digest: SHA-256 of the token in the cookie; previous: that of the token before, for seconds after rotate_time.
 * method: uas.account.v1.SignInMethod. A session that is ended is deleted.
 */
const session = `
create table "console_session" (
  "id" uuid not null,
  "user_id" uuid not null,
  "digest" bytea not null,
  "previous" bytea null,
  "rotate_time" timestamptz null,
  "method" smallint not null,
  "create_time" timestamptz not null default now(),
  "seen_time" timestamptz not null default now(),
  "expire_time" timestamptz not null,
  "ip_address" text not null,
  "user_agent" text not null,
  constraint "console_session_pkey" primary key ("id"),
  constraint "console_session_digest_unique" unique ("digest"),
  constraint "console_session_method_check" check (method >= 1 and method <= 3)
) with (fillfactor = 80);
create index "console_session_user_id_id_index" on "console_session" ("user_id", "id");
create index "console_session_previous_index" on "console_session" ("previous")`;

/**
 * Each row is one sending, so that the limits are counts of rows. binding: the session, or the browser that wants one,
 * which alone can use the code; with purpose and subject, what for. mac: a keyed hash of the code with all of that;
 * null: nothing was sent, for nobody has the number and nobody may. country: its calling code.
 */
const code = `
create table "one_time_code" (
  "id" uuid not null,
  "purpose" smallint not null,
  "wrong" smallint not null default 0,
  "subject" text not null,
  "binding" text not null,
  "phone" text not null,
  "country" text not null,
  "ip_address" text not null,
  "account_id" uuid null,
  "mac" bytea null,
  "create_time" timestamptz not null default now(),
  "expire_time" timestamptz not null,
  "use_time" timestamptz null,
  constraint "one_time_code_pkey" primary key ("id"),
  constraint "one_time_code_wrong_check" check (wrong >= 0 and wrong <= 5)
);
create index "one_time_code_phone_index" on "one_time_code" ("phone", "create_time");
create index "one_time_code_account_id_index" on "one_time_code" ("account_id", "create_time");
create index "one_time_code_ip_address_index" on "one_time_code" ("ip_address", "create_time");
create index "one_time_code_country_index" on "one_time_code" ("country", "create_time");
create index "one_time_code_create_time_index" on "one_time_code" ("create_time")`;

/** digest: SHA-256 of the token in the link. One per user: a newer one replaces it. Used up, it is deleted. */
const link = `
create table "sign_in_link" (
  "user_id" uuid not null,
  "digest" bytea not null,
  "expire_time" timestamptz not null,
  constraint "sign_in_link_pkey" primary key ("user_id"),
  constraint "sign_in_link_digest_unique" unique ("digest")
)`;

/** subject: whom it was about, hashed where it is an address that somebody typed. */
const failure = `
create table "sign_in_failure" (
  "id" uuid not null,
  "subject" text not null,
  "ip_address" text not null,
  "create_time" timestamptz not null default now(),
  constraint "sign_in_failure_pkey" primary key ("id")
);
create index "sign_in_failure_subject_index" on "sign_in_failure" ("subject", "create_time");
create index "sign_in_failure_ip_address_index" on "sign_in_failure" ("ip_address", "create_time");
create index "sign_in_failure_create_time_index" on "sign_in_failure" ("create_time")`;

/** Creates them. */
export class SignIn0016 extends Migration {
  override up(): void {
    for (const table of [user, session, code, link, failure]) this.addSql(table);
  }
}

-- Accounts, and signing in to the console: users, sessions, codes, links, failures.

-- state: uas.account.v1.AccountState. discount_bp: in hundredths of a percent.
-- low_balance_threshold: in nano-USD. rpm, tpm, concurrency: limits of this account; if all are
-- null, the limits of uas.yaml apply. limit_wait_ms: how long a call waits for capacity within
-- them; null means the value of uas.yaml. alert_url, alert_emails: recipients of alerts about low
-- balances and budgets.
create table account (
  id uuid not null,
  name text not null,
  create_time timestamptz not null default now(),
  state smallint not null default 1,
  suspend_reason text null,
  suspend_time timestamptz null,
  discount_bp int not null default 0,
  low_balance_threshold bigint null,
  alert_url text null,
  alert_emails text[] null,
  rpm int null,
  tpm int null,
  concurrency int null,
  limit_wait_ms int null,
  change_time timestamptz not null default now(),
  constraint account_pkey primary key (id),
  constraint account_state_check check (state >= 1 and state <= 2),
  constraint account_discount_bp_check check (discount_bp >= 0 and discount_bp <= 10000),
  constraint account_low_balance_threshold_check check (low_balance_threshold > 0),
  constraint account_limits_check check (rpm > 0 and tpm > 0 and concurrency > 0),
  constraint account_limit_wait_ms_check check (limit_wait_ms >= 0 and limit_wait_ms <= 30000)
);
create index account_change_time_index on account (change_time);

-- role: uas.account.v1.UserRole. phone: in E.164 form. email: in lower case. totp: the sealed
-- secret of the authenticator in use. totp_pending: the sealed secret of an authenticator that is
-- being set up. totp_step: the last 30 seconds whose code was used.
create table console_user (
  id uuid not null,
  account_id uuid not null,
  role smallint not null default 1,
  name text not null default '',
  phone text null,
  email text null,
  password_hash text null,
  totp bytea null,
  totp_pending bytea null,
  totp_step bigint null,
  language text not null default '',
  create_time timestamptz not null default now(),
  sign_in_time timestamptz null,
  constraint console_user_pkey primary key (id),
  constraint console_user_phone_unique unique (phone),
  constraint console_user_email_unique unique (email),
  constraint console_user_role_check check (role >= 1 and role <= 2),
  constraint console_user_password_hash_check check (password_hash is null or email is not null)
);
create index console_user_account_id_id_index on console_user (account_id, id);

-- digest: SHA-256 of the token in the cookie. previous: digest of the token before, valid for
-- seconds after rotate_time. method: uas.account.v1.SignInMethod. A session that ends is deleted.
create table console_session (
  id uuid not null,
  user_id uuid not null,
  digest bytea not null,
  previous bytea null,
  rotate_time timestamptz null,
  method smallint not null,
  create_time timestamptz not null default now(),
  seen_time timestamptz not null default now(),
  expire_time timestamptz not null,
  ip_address text not null,
  user_agent text not null,
  constraint console_session_pkey primary key (id),
  constraint console_session_digest_unique unique (digest),
  constraint console_session_method_check check (method >= 1 and method <= 3)
) with (fillfactor = 80);
create index console_session_user_id_id_index on console_session (user_id, id);
create index console_session_previous_index on console_session (previous);

-- One row per message, so that the limits on messages are counts of rows. binding: the session or
-- browser that requested the code; only it can use the code. purpose and subject: what the code
-- allows. mac: a keyed hash of the code with all of that. It is null if nothing was sent because no
-- user has the number; this must not be visible. country: the calling code of the number.
create table one_time_code (
  id uuid not null,
  purpose smallint not null,
  wrong smallint not null default 0,
  subject text not null,
  binding text not null,
  phone text not null,
  country text not null,
  ip_address text not null,
  account_id uuid null,
  mac bytea null,
  create_time timestamptz not null default now(),
  expire_time timestamptz not null,
  use_time timestamptz null,
  is_known boolean not null default false,
  constraint one_time_code_pkey primary key (id),
  constraint one_time_code_wrong_check check (wrong >= 0 and wrong <= 5)
);
create index one_time_code_phone_index on one_time_code (phone, create_time);
create index one_time_code_account_id_index on one_time_code (account_id, create_time);
create index one_time_code_ip_address_index on one_time_code (ip_address, create_time);
create index one_time_code_country_index on one_time_code (country, create_time);
create index one_time_code_create_time_index on one_time_code (create_time);

-- digest: SHA-256 of the token in the link. One per user: a newer one replaces it. A used one is
-- deleted.
create table sign_in_link (
  user_id uuid not null,
  digest bytea not null,
  expire_time timestamptz not null,
  constraint sign_in_link_pkey primary key (user_id),
  constraint sign_in_link_digest_unique unique (digest)
);

-- Wrong codes over the life of their subject. subject: an authenticator, hashed with the browser or
-- session of the codes, or a number. Never deleted.
create table code_guess (
  subject text not null,
  wrong integer not null,
  last_time timestamptz not null default now(),
  constraint code_guess_pkey primary key (subject)
);

-- subject: the person who tried to sign in, hashed if it is a typed address.
create table sign_in_failure (
  id uuid not null,
  subject text not null,
  ip_address text not null,
  create_time timestamptz not null default now(),
  constraint sign_in_failure_pkey primary key (id)
);
create index sign_in_failure_subject_index on sign_in_failure (subject, create_time);
create index sign_in_failure_ip_address_index on sign_in_failure (ip_address, create_time);
create index sign_in_failure_create_time_index on sign_in_failure (create_time);

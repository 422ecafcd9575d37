/**
 * Where each table would be if accounts were spread over several PostgreSQL servers, and how the
 * account of its rows is found. A test compares this list with the database, and watches that
 * statements of calls and tasks read rows of one account only (docs/scaling.md).
 */

/** Where the rows of a table belong. */
export interface TableRole {
  /**
   * - `account`: in the server of its account, with the balance.
   * - `server`: in each server, about that server.
   * - `installation`: in one server, for all accounts.
   */
  readonly place: "account" | "server" | "installation";
  /** How the account of a row is found. Absent: its rows belong to no account. */
  readonly owner?: TableOwner;
}

/**
 * - a string: the column with the account's id.
 * - `column` and `parent`: the row of another table, whose key `parentKey` the column has.
 * - `subject`: a column with `a` and an account's id, `k` and a key's id, or another subject.
 */
export type TableOwner =
  | string
  | { readonly column: string; readonly parent: string; readonly parentKey: string }
  | { readonly subject: string };

const accountRow = { place: "account", owner: "account_id" } as const satisfies TableRole;
const serverRow = { place: "server" } as const satisfies TableRole;
const installationRow = { place: "installation" } as const satisfies TableRole;
const installationOfAccount = {
  place: "installation",
  owner: "account_id",
} as const satisfies TableRole;

function through(parent: string, column: string, parentKey = "id"): TableRole {
  return { place: "account", owner: { parent, column, parentKey } };
}

/** The role of each table by its name. A new table needs a line. */
export const tableRoles: Readonly<Record<string, TableRole>> = {
  // Money.
  balance: accountRow,
  open_hold: accountRow,
  hold_checkpoint: through("open_hold", "hold_id"),
  hold_step: through("open_hold", "hold_id"),
  released_hold: accountRow,
  key_spend: accountRow,
  budget: accountRow,
  ledger_charge: accountRow,
  ledger_side: accountRow,
  booking: accountRow,
  audited_account: accountRow,
  audited_key: through("key_spend", "key_id", "key_id"),
  audited_budget: through("budget", "owner_id", "owner_id"),
  node: serverRow,
  ledger_checkpoint: serverRow,
  retention_floor: serverRow,
  export_day: serverRow,
  price_version: installationRow,
  model_price: installationRow,
  redeem_code: installationOfAccount,
  // The call log.
  call: accountRow,
  usage_hour: accountRow,
  call_watch: accountRow,
  idempotent_call: accountRow,
  // Tasks, webhooks and stored data.
  task: accountRow,
  task_event: through("task", "task_id"),
  webhook_secret: accountRow,
  webhook_event: accountRow,
  webhook_delivery: accountRow,
  webhook_attempt: through("webhook_delivery", "delivery_id"),
  webhook_endpoint: accountRow,
  native_object: accountRow,
  native_job: accountRow,
  native_upload: accountRow,
  stored_response: accountRow,
  response_event: accountRow,
  kept_reasoning: accountRow,
  result_file: accountRow,
  result_blob: serverRow,
  alert: accountRow,
  // Limits of models and of vendors' credentials belong to the installation.
  limit_use: { place: "account", owner: { subject: "subject" } },
  limit_running: { place: "account", owner: { subject: "subject" } },
  // Accounts, keys and users, which are looked up before the account is known.
  account: { place: "installation", owner: "id" },
  api_key: installationOfAccount,
  key_use: {
    place: "installation",
    owner: { column: "key_id", parent: "api_key", parentKey: "id" },
  },
  key_copy: installationOfAccount,
  data_key: installationOfAccount,
  console_user: installationOfAccount,
  console_session: installationRow,
  one_time_code: installationOfAccount,
  sign_in_link: installationRow,
  sign_in_failure: installationRow,
  code_guess: installationRow,
  // Routing, configuration and operators.
  unlimited_route: installationRow,
  config_revision: installationRow,
  config_secret: installationRow,
  config_process: installationRow,
  operator_alert: installationRow,
  service_credential: installationRow,
  audit_entry: installationOfAccount,
  migration: serverRow,
};

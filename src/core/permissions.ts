/** The permissions of service credentials. Each RPC names its own in the contract. */

/** Each permission, and what it allows. A test compares the names with the contract. */
export const permissions: Readonly<Record<string, string>> = {
  "accounts:erase": "erase the personal data of closed accounts",
  "accounts:read": "read accounts",
  "accounts:write":
    "create, change, suspend, resume and close accounts, with their discounts and limits",
  "audit:read": "read the audit log of operators",
  "billing:read": "read balances, ledger entries, prices and redeem codes; audit the ledger",
  "billing:write": "top up, refund and adjust balances; create redeem codes",
  "calls:read": "read and export call records",
  "config:read": "read, check and plan configurations; list revisions and names of secrets",
  "config:write": "apply, roll back and reload the configuration; set secrets",
  "keys:read": "read API keys, without their secrets",
  "keys:write": "create, change, disable and delete API keys",
  "models:read": "list models",
  "system:read": "read system information and active alerts",
  "system:write": "send test alerts",
  "tasks:read": "read tasks",
  "tasks:write": "cancel tasks",
  "usage:read": "read usage over time",
  "users:read": "read users of the console",
  "users:write": "create and delete users, and sign-in links for them; not for operators",
  "vendors:read": "read vendors, routes and configured models",
  "vendors:write": "test vendors",
  "webhooks:read": "read webhook deliveries and endpoints",
  "webhooks:write": "read and rotate signing secrets; resend webhooks",
};

/** Whether a text is the name of a permission. */
export function isPermission(text: string): boolean {
  return Object.hasOwn(permissions, text);
}

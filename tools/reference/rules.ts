/** The rules that tests and comments name, one sentence each. */
import { code, table } from "./table.ts";

/** All rules by name. A test compares them with the names in the repository. */
export const rules: Readonly<Record<string, string>> = {
  "R-AUTH-1":
    "The first key that is present decides: `Authorization: Bearer`, then `X-API-Key`, then `?api-key=`, then the vendor's own form below its prefix.",
  "R-AUTH-2":
    "Invalid, disabled and deleted keys get the same 401; only the log of the account has the reason.",
  "R-AUTH-3": "Every process refuses a disabled or deleted key within 1 s.",
  "R-AUTH-4": "A key is in no log, metric, error or request to a vendor.",
  "R-AUTH-5": "Model lists need a key and contain only what the key may use.",
  "R-AUTH-6": "Every RPC declares who may call it: everyone, a key, a session or the operator.",
  "R-AUTH-7":
    "The key is checked before a byte of the body is read; unfinished bodies have a limit per key and process.",
  "R-CON-1":
    "The console has pages for customers and operators, and calls the same services as every client, with a session cookie.",
  "R-ERR-1": "An error has the body of the caller's style, with the gateway's stable code.",
  "R-ERR-2": "The codes of errors are stable and listed once, in the contract.",
  "R-ERR-3":
    "If a vendor refuses the operator's credential or account, customers get 503 and the operator an alarm.",
  "R-ERR-4":
    "A vendor's refusal of the customer's request passes in the same style byte for byte, but for masked credentials and missing words.",
  "R-ERR-5":
    "If a job may be running at a vendor, an unclear failure is 500 with `x-should-retry: false`.",
  "R-ERR-6": "A stream that fails ends with an error event and without its final event.",
  "R-ERR-7": "Bad input gets no 5xx, does not hang and costs nothing; sizes and depth are limited.",
  "R-HOOK-1":
    "The signed bytes of a webhook are the sent bytes, and stay valid if JSON is parsed and written again.",
  "R-HOOK-2": "Webhooks also have the headers of Standard Webhooks.",
  "R-HOOK-3":
    "Final events are delivered at least once, in 14 attempts over 72 h; progress is the newest only, at most once a second, and never after the end.",
  "R-HOOK-4": "An attempt takes at most 5 s, and a slow receiver delays no other.",
  "R-HOOK-5":
    "Webhook addresses are https and public, are checked when connecting, and redirect nowhere.",
  "R-HOOK-6":
    "Every account has a signing secret; attempts are stored for 30 days and can be sent again.",
  "R-HOOK-7":
    "Below a vendor's prefix, the gateway's webhook replaces the vendor's, and has the vendor's payload.",
  "R-HOOK-8":
    "Every webhook has the same members, with `external_data` that identifies event, model and task.",
  "R-HOOK-9": "During a rotation both secrets sign; a day after it only the new one does.",
  "R-ID-1":
    "The request id is the first valid one of `x-request-id`, `request-id` and the body of a submit, else a new UUID.",
  "R-ID-2": "Replies, errors and streams of generation have `x-request-id`.",
  "R-ID-3": "The messages style also has `request-id`.",
  "R-ID-4": "Each call is found by its request id in the call log.",
  "R-ID-5": "A vendor's request ids are stored and never sent as `x-request-id`.",
  "R-ID-6": "Request ids may repeat; holds, calls and charges have ids of their own.",
  "R-ID-7": "Model lists have no request id.",
  "R-KEY-1":
    "Keys are random; the database has their digest, and an encrypted copy that the operator can switch off.",
  "R-KEY-2": "A key is enabled, disabled or deleted; deletion is final.",
  "R-KEY-3": "Showing a key again needs a one-time code for this session, key and action.",
  "R-KEY-4":
    "A key has a name, models, an expiry and a spend limit; each is refused with its own error.",
  "R-KEY-5":
    "Failed codes and passwords are counted so that a stranger can neither guess nor lock the owner out.",
  "R-LIM-1":
    "Requests, tokens, concurrent calls and budgets are limited exactly over all processes, with the headers of the caller's style.",
  "R-LIM-2": "Free work is limited per account and delays no paid work.",
  "R-MDL-1": "`GET /api/ai/models` and the schema of a model have a fixed form.",
  "R-MON-1": "Amounts are whole nano-dollars; each charge stores the version of its price.",
  "R-MON-2":
    "Each call holds money durably before its vendor is called, and is settled or released exactly once.",
  "R-MON-3": "A balance is never negative; a shortfall is the platform's loss.",
  "R-MON-4": "A 402 says what is needed and what is available.",
  "R-MON-5": "The hold of a stream without a limit grows, or the stream ends as at a length limit.",
  "R-MON-6": "The ledger is double entry and append-only, and an audit checks it.",
  "R-MON-7":
    "Money of a dead process is free within 60 s; without the database the answer is 503 within 1 s.",
  "R-MON-8":
    "A failure before content is free; later, the input and the delivered output are charged.",
  "R-MON-9": "Top-ups and refunds are idempotent by reference; a refund never exceeds its charge.",
  "R-MON-10": "Calls that are refused before a hold are recorded too.",
  "R-MON-11":
    "Once a request was sent, its input is charged; after a disconnect the reply is read on for the vendor's usage.",
  "R-MON-12": "Every reply is compared with its hold; routes that ignore limits are marked.",
  "R-MON-13": "What a receipt shows is computed from the units of prices.",
  "R-MON-14":
    "An acknowledged booking survives all but the loss of the disk; a data folder has one owner, and the audit's checkpoints are a chain.",
  "R-MON-15": "Implausible figures of a vendor are not charged; the rest is a loss.",
  "R-MON-16": "What is free is limited, and media are measured by what can be played.",
  "R-OPS-1": "The configuration changes without a restart; a faulty one changes nothing.",
  "R-OPS-2":
    "A stopping process is first not ready, then finishes its calls; a rolling restart fails no call.",
  "R-OPS-3": "A process whose clock differs by more than 5 s from the database's is not ready.",
  "R-RTE-1":
    "Routes are chosen by priority, weight and load; conversations stay with their route; breakers are local.",
  "R-RTE-2":
    "Another route is tried only before the first content, and never if a job may be running.",
  "R-RTE-3": "Every attempt is in the record of its call.",
  "R-TSK-1": "A task's status is one of four words; a task that has ended never changes.",
  "R-TSK-2": "A submit is checked by the schema that the gateway publishes for its model.",
  "R-TSK-3": "A repeated submit with the same id and body returns the same task, charged once.",
  "R-TSK-4": "A poll has a fixed form and can wait for a change.",
  "R-TSK-5": "A cancel returns the task, or 409 if its vendor cannot stop it.",
  "R-TSK-6":
    "A task holds at its submit and is charged only if it completes; state, money and webhook change together.",
  "R-TSK-7": "A vendor is never called twice for one task.",
  "R-TSK-8": "Results are copied, and served for 7 days under addresses that cannot be guessed.",
  "R-TSK-9": "A task ends, is settled and reports without polls, also after a restart.",
  "R-TSK-10": "The error codes of tasks are a part of the contract's codes.",
  "R-TXT-1":
    "Every text model answers in all three styles; in the vendor's own style bytes pass unchanged.",
  "R-TXT-2": "A translation names what it drops, or refuses it with `x-uas-strict: true`.",
  "R-TXT-3": "Reasoning returns unchanged to the vendor that generated it.",
  "R-TXT-4": "A translated stream of messages begins with the number of input tokens.",
  "R-TXT-5": "The paths below `/api/ai` take chat completions, or `modelKey` and `prompt`.",
  "R-TXT-6": "A base URL that ends in `/v1` works for every SDK.",
  "R-TXT-7": "`/v1/models` answers in OpenAI's or Anthropic's form, and tokens can be counted.",
  "R-TXT-8": "A silent stream gets a keep-alive after 15 s.",
  "R-TXT-9": "A disconnect stops the vendor or reads its reply on; usage is recorded either way.",
  "R-TXT-10": "What vendors bill beyond tokens is served only with a price.",
  "R-TXT-11": "The output limit is sent under the name that the route's model honours.",
  "R-TXT-12": "With `x-uas-cost: true`, a reply contains its charge.",
  "R-TXT-13":
    "Every member, tool, beta and usage figure of the SDKs is classified; unknown ones are refused or raise an alarm.",
  "R-TXT-14": "Deviations of vendors are named quirks, which callers do not notice.",
  "R-VND-1": "Below a vendor's prefix only declared paths exist.",
  "R-VND-2": "Native calls have the same keys, holds, records and webhooks, and pass unchanged.",
  "R-VND-3": "Ids of vendors' objects belong to an account; for others they are 404.",
  "R-VND-4": "Known pitfalls of vendors' native APIs are handled.",
};

/** The page of all rules. */
export function rulesPage(): string {
  const rows = Object.entries(rules).map(([name, text]) => [code(name), text]);
  return `# Rules

Here you find what the names such as \`R-MON-2\` in comments and tests mean. Generated from \`tools/reference/rules.ts\`.

${table(["rule", "states"], rows)}`;
}

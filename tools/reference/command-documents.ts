/** The documents that commands print with `--json`, for docs/reference/commands.md. */

/** Documents with the commands that print them. Links are relative to docs/reference/. */
export const commandDocuments: readonly (readonly [commands: string, document: string])[] = [
  [
    "check",
    "`{ok, source, vendors, models, warnings}`, or `{ok: false, errors}` and exit 1; with `--probe` also `probes: [{vendor, credential, verdict, status, latencyMs, message, missingModels}]`, `verdict` one of `ok`, `refused`, `failing` (both: exit 1), `unknown`",
  ],
  ["init", "`{output, vendors, models, unset, next}`; `unset`: variables of keys that are not set"],
  [
    "doctor",
    "`{ok, findings: [{check, result, text, remedy}]}`; `result` is `ok`, `skipped`, `warning` or `problem` (exit 1)",
  ],
  [
    "import litellm, import new-api",
    "`{vendors, models, unpriced, variables, notes: [{place, text}], yaml}`",
  ],
  ["account create", "`{accountId}`"],
  [
    "key create",
    "`{keyId, key, expiresAt, limit, rpm, tpm, concurrency, budgets}`; `key` is printed once",
  ],
  [
    "key list, key update, key limit",
    "`{keyId, name, masked, state, models, createdAt, deletedAt, expiresAt, limit, rpm, tpm, concurrency, budgets, spent, lastUsedAt}`; each of `budgets`: `{amount, period, zone, spent, resetsAt}`",
  ],
  ["key disable, key enable, key delete", "`{keyId, state}`"],
  ["console link", "`{url, userId, accountId, expiresAt}`"],
  [
    "vendor list",
    "`{vendor, model, credential, breaker, breakerFailure, probeTime, attempts, failed, firstContentP50Ms, firstContentP95Ms, failure, failureTime}`; `credential` is null for a route, `model` for a credential",
  ],
  ["vendor unlimited", "`{vendor, model, callId, limitTokens, outputTokens, createTime}`"],
  ["vendor clear-unlimited", "`{vendor, model, cleared}`"],
  ["vendor presets", "`{preset, kind, baseUrl, needsApiKey, limitParameter, modelTypes, source}`"],
  [
    "models list",
    "`{modelKey, name, type, price, maxOutputTokens, routes, state}`; `state` is `in_force`, `not_in_the_file` (in force, but changed or removed there), `not_in_force` (in the file only), or without a gateway `in_the_file`",
  ],
  [
    "models import",
    "`{vendor, source, names, models, leftOut: [{name, reason}], yaml}`; `names` is `vendor` or `list`: where the names come from",
  ],
  ["price show", "`{modelKey, versions, costs, notInForce}`"],
  ["price import", "`{sources, margin, models, yaml}` ([prices](#versions-of-prices))"],
  ["usage", "`{points, totals}` ([usage](#points-of-usage))"],
  ["export calls, export ledger", "the file, with and without `--json`"],
  [
    "ledger list",
    "`{transactionId, kind, amount, balanceAfter, reference, reason, createdAt}`; `kind` is `top_up`, `promo`, `charge`, `refund`, `adjustment`, `late_settlement`",
  ],
  [
    "webhook secret, webhook rotate, webhook promote",
    "`{accountId, secret, otherSecret, promoted, rotationEndsAt}`",
  ],
  ["webhook resend-failed", "`{deliveries}`: how many"],
  [
    "webhook endpoints, webhook enable",
    "`{origin, state, failures, waiting, failingSince, nextProbeAt, lastSuccessAt, lastFailureAt}`",
  ],
  ["master-key rotate", "`{dataKeys, webhookSecrets, authenticators, reasoning, lost}`: how many"],
  ["schema", "the JSON Schema of `uas.yaml`, with and without `--json`"],
  [
    "contract compare",
    "`{breaking, changes: [{action, kind, name, breaking, property, paths}]}`; exit 1 if a change breaks clients",
  ],
  ["refund", "`{accountId, balance, held, available, replayed, callId}`"],
  ["topup, account adjust", "`{accountId, balance, held, available, replayed}`"],
  [
    "account show",
    "`{accountId, name, createdAt, balance, held, available, state, suspendReason, suspendedAt, discountPercent, priceList, lowBalanceThreshold, alertUrl, alertEmails, rpm, tpm, concurrency, budgets}`",
  ],
  [
    "account list, account suspend, account resume, account close, account erase, account discount, account alert, account limit",
    "`{accountId, name, createdAt, balance, held, available, state, suspendReason, suspendedAt, discountPercent, priceList, lowBalanceThreshold, alertUrl, alertEmails, rpm, tpm, concurrency, budgets}`, without balances",
  ],
  [
    "redeem create",
    "`{redeemCodeId, hint, amount, source, state, note, createdAt, expiresAt, endedAt, accountId}`, and `code`, which is printed once",
  ],
  [
    "redeem list, redeem revoke",
    "`{redeemCodeId, hint, amount, source, state, note, createdAt, expiresAt, endedAt, accountId}`",
  ],
  [
    "service create, service rotate",
    "`{secret, name, permissions, secretHint, state, createdAt, expiresAt, previousExpiresAt}`; `secret` is printed once",
  ],
  [
    "service list, service enable, service disable",
    "a list of `{name, permissions, secretHint, state, createdAt, expiresAt, previousExpiresAt}`",
  ],
  ["service delete", "`{name}`"],
  ["calls list", "a list of [records of calls](#the-record-of-a-call)"],
  [
    "calls show",
    "[the record of a call](#the-record-of-a-call) with its [receipt](#the-receipt-of-a-call); with `--all` a list",
  ],
  [
    "task show",
    "the body of a poll, then `submitRequestId, accountId, keyId, vendor, vendorTaskId, callbackUrl, held, priceVersion`; also `deliveries`",
  ],
  [
    "task list",
    "the body of a poll, then `submitRequestId, accountId, keyId, vendor, vendorTaskId, callbackUrl, held, priceVersion`",
  ],
  [
    "ledger audit",
    "`{ok, findings: [{rule, detail}], checkpoint: {number, createdAt, entries, balances, hash}, complete}`; exit 1 with findings",
  ],
  ["ledger accept", "`{checkpoint}`, as of `ledger audit`"],
  ["webhook deliveries, webhook resend, webhook test", "[a delivery](#webhook-deliveries)"],
  ["webhook show", "[a delivery](#webhook-deliveries) with `body` and `attemptList`"],
];

/** Documents that several commands share, by their headings. */
export const sharedDocuments: Readonly<Record<string, string>> = {
  "Webhook deliveries":
    "`deliveryId` (`external_data.event_id` in the payload), `accountId`, `taskId`, `callbackId`, `status` (`progress`, `completed`, `failed`, `cancelled`), `progress`, `sequence`, `url`, `state` (`pending`, `sending`, `delivered`, `failed`, `dropped`, `parked`), `attempts`, `createdAt`, `nextAttemptAt`, `endedAt`, `test`. Each of `attemptList`: `number`, `startedAt`, `outcome` (`delivered`, `redirected`, `refused`, `gone`, `server_error`, `blocked_address`, `dns`, `connect`, `tls`, `timeout`, `reset`, `lost`), `status` (null without an answer), `addressClass` (`public_ipv4`, `public_ipv6`, `listed`, `blocked`, null without a connection), `dnsMs`, `connectMs`, `tlsMs`, `firstByteMs`, `totalMs`, `answer` (its first 2 KiB).",
  "Versions of prices":
    "Each of `versions` of `price show` has: `version` (16 hexadecimal digits), `state` (`past`, `current`, `future`), `from` (when it takes effect; null if not set), `loadedAt` (when a gateway first loaded it for this model; null if none has), and `price`. A price has `units`: USD by unit, the [units](price-units.md) in camel case without `tools`, such as `cacheWrite1h` and `webSearch`. It also has `images` (by `size` and `quality`, if they have separate prices), `tiers` (each `above` and `units`) and `serviceTiers` (a price by [service tier](../configuration.md#service-tiers), if they have separate prices). `notInForce` lists prices of the file that the gateway has not loaded (`from`, `price`). `costs`: `vendor`, `model` and `versions` of each route whose [cost](../configuration.md#vendor-costs) is configured.\n\n**Importing prices.** `price import` compares with `genai-prices`, which comes with the gateway, or with the list that `--from` names: a downloaded file, whose format is recognised, or `models.dev:FILE` and `genai-prices:FILE`. Several `--from` must agree. Its rules: [configuration.md](../configuration.md#importing-prices).\n\nStandard output is YAML: the differences as comments, each with its status, then the lines to copy. With `--output` the YAML goes to a new file. `models` of the JSON document has `modelKey`, `routes` and `price`, each with `status`, `current`, `imported`, `reason` and `remedy`; `yaml` is the YAML.",
  "Points of usage":
    "`--since` and `--until` are a duration back from now (`12h`, `30d`), a date or a time with its offset; `--bucket` is `hour`, `day`, `week` or `month`, each as it begins in `--zone` (an IANA name; default `UTC`); `--group` is `model`, `key`, `vendor`, `account` or `none`. Each of `points`: `startTime` of its bucket, `group` (`(rest)`: all beyond the hundred that cost most), `calls`, `failedCalls`, `inputTokens`, `cachedInputTokens`, `cacheWriteTokens`, `outputTokens`, `reasoningTokens`, `images`, `seconds`, `cost`, and the [financial figures](../money.md#revenue-vendor-cost-and-margin) `vendorCost`, `attemptCost`, `loss`, `margin`, `uncosted`. `totals` has the same sums of the whole range.",
  "The record of a call":
    "`requestId`, `accountId`, `keyId`, `model`, `vendor` (null if none was called), `status`, `errorCode` (null on success), `ending` (`completed`, `refused`, `upstream_refused`, `upstream_failed`, `client_gone`, `gateway_stopped`, `gateway_failed`, `out_of_balance`, `gateway_lost`, `cancelled`, `key_disabled`, `key_deleted`, `key_expired`), `usageSource` (`upstream`, `estimated`, null without usage), `inputTokens`, `cachedInputTokens`, `outputTokens`, `cost`, `priceVersion`, `startedAt`, `durationMs`, `firstByteMs` (0 without content), `cacheWriteTokens`. Further members are `cacheWrite1hTokens` and `cacheWrite12hTokens` (cached for an hour or twelve), `reasoningTokens`, `units` (rare units by the names of [units](uas-yaml.md#models): `audio_input`, `tools.web_search` …), `held`, `callId`, `upstreamRequestId`, `stream`, `path`, `dropped` (a list of members that could not be translated), `attempts` (failed attempts before another vendor was tried: each `vendor`, `model`, `credential` (its name, in `calls show` only), `errorCode`, `durationMs`, 0 if it was not called, and `vendorCost`, what the vendor may charge for it, `null` if nothing or not known).",
  "The receipt of a call":
    "`receipt` of `calls show`; [money.md](../money.md#receipts) explains it. Amounts of lines, `subtotal` and `discount` are exact and not rounded.\n\n`charged` (whether the usage was charged), `lines` (each `unit`, `quantity`, `price`, `per`: 1000000 for tokens and token-hours, else 1, `amount`; the [units](price-units.md) without `tools`, such as `web_search`), `subtotal`, `discountBp` (hundredths of a percent), `discount`, `amount`, `recomputed` (null if the price is not known), `shortfall`, `priceVersion`, `price` (as in [prices](#versions-of-prices); null without a hold), `tierAbove` (null: none of the tiers), `serviceTier` (null: the usual one), `holds` (each `event`: `held`, `grown`, `settled`, `released`, `expired`; `held` from then on; `time`), `entries` (each `transactionId`, `kind`: `charge`, `late_settlement`, `refund`; `amount`, negative is out; `balanceBefore`, `balanceAfter`, `time`, `reference`), `vendorCost` (null without a configured cost).",
};

/** English: every other language has the same members. */
import { accounts, audit, system } from "./en/accounts.ts";
import { billing, budgets, codes, rates } from "./en/billing.ts";
import { allCalls, calls, refund } from "./en/calls.ts";
import { common, layout } from "./en/common.ts";
import { keys } from "./en/keys.ts";
import { models, prices, reference, vendors } from "./en/models.ts";
import { finance, overview, usage } from "./en/overview.ts";
import { playground } from "./en/playground.ts";
import { code, settings, signIn } from "./en/sign-in.ts";
import { allDeliveries, tasks, webhooks } from "./en/tasks.ts";

/** All texts in English, by area. */
export const en = {
  common,
  layout,
  signIn,
  code,
  settings,
  overview,
  usage,
  finance,
  keys,
  calls,
  allCalls,
  refund,
  billing,
  budgets,
  rates,
  codes,
  tasks,
  webhooks,
  allDeliveries,
  models,
  prices,
  vendors,
  reference,
  playground,
  accounts,
  audit,
  system,
};

/** The members that every language has. */
export type Texts = typeof en;

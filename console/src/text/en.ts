/** English: every other language has the same members. */
import { accounts, audit, system, keys } from "./en/accounts.ts";
import { billing, budgets, codes, rates, finance, overview, usage } from "./en/money.ts";
import { allCalls, calls, refund, allDeliveries, tasks, webhooks } from "./en/calls.ts";
import { common, layout, code, settings, signIn } from "./en/common.ts";
import { models, prices, reference, vendors, playground } from "./en/models.ts";

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

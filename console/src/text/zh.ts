/** Simplified Chinese, in the terms of Chinese cloud consoles. */
import type { Texts } from "./en.ts";
import { accounts, audit, system, keys } from "./zh/accounts.ts";
import { billing, budgets, codes, rates, finance, overview, usage } from "./zh/money.ts";
import { allCalls, calls, refund, allDeliveries, tasks, webhooks } from "./zh/calls.ts";
import { common, layout, code, settings, signIn } from "./zh/common.ts";
import { models, prices, reference, vendors, playground } from "./zh/models.ts";

/** All texts in Chinese, by area. */
export const zh: Texts = {
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

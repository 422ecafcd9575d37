/** Simplified Chinese, in the terms of Chinese cloud consoles. */
import type { Texts } from "./en.ts";
import { accounts, audit, system } from "./zh/accounts.ts";
import { billing, budgets, codes, rates } from "./zh/billing.ts";
import { allCalls, calls, refund } from "./zh/calls.ts";
import { common, layout } from "./zh/common.ts";
import { keys } from "./zh/keys.ts";
import { models, prices, reference, vendors } from "./zh/models.ts";
import { finance, overview, usage } from "./zh/overview.ts";
import { playground } from "./zh/playground.ts";
import { code, settings, signIn } from "./zh/sign-in.ts";
import { allDeliveries, tasks, webhooks } from "./zh/tasks.ts";

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

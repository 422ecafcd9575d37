/** Simplified Chinese. */
import type { Texts } from "./en.ts";
import { code, common, shell, signIn } from "./zh/base.ts";
import { billing, models, tasks, webhooks } from "./zh/more.ts";
import { operator } from "./zh/operator.ts";
import { keys, overview } from "./zh/pages.ts";
import { playground } from "./zh/playground.ts";
import { settings } from "./zh/settings.ts";
import { calls, usage } from "./zh/work.ts";

/** All texts in Chinese. */
export const zh: Texts = {
  common,
  shell,
  signIn,
  code,
  overview,
  keys,
  calls,
  usage,
  settings,
  billing,
  tasks,
  webhooks,
  models,
  playground,
  operator,
};

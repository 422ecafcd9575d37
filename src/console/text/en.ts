/** English: the language that the others are measured by. */
import { code, common, shell, signIn } from "./en/base.ts";
import { billing, models, tasks, webhooks } from "./en/more.ts";
import { operator } from "./en/operator.ts";
import { keys, overview } from "./en/pages.ts";
import { playground } from "./en/playground.ts";
import { settings } from "./en/settings.ts";
import { calls, usage } from "./en/work.ts";

/** All texts in English. */
export const en = {
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

/** What every language has. */
export type Texts = typeof en;

/** The migrations, oldest first. A new one is a file in migration/ and a line here; merged ones never change. */
import type { MigrationObject } from "@mikro-orm/core";
import { AccountKey0001 } from "./migration/0001-account-key.ts";
import { Billing0002 } from "./migration/0002-billing.ts";
import { ResponseState0003 } from "./migration/0003-response-state.ts";
import { CallDropped0004 } from "./migration/0004-call-dropped.ts";
import { Money0005 } from "./migration/0005-money.ts";
import { AccountKey0006 } from "./migration/0006-account-key.ts";
import { CallPrice0007 } from "./migration/0007-call-price.ts";
import { Webhook0009 } from "./migration/0009-webhook.ts";
import { Task0010 } from "./migration/0010-task.ts";
import { Result0011 } from "./migration/0011-result.ts";
import { Background0012 } from "./migration/0012-background.ts";
import { TaskHint0013 } from "./migration/0013-task-hint.ts";
import { Native0014 } from "./migration/0014-native.ts";
import { SignIn0016 } from "./migration/0016-sign-in.ts";
import { KeyCopy0017 } from "./migration/0017-key-copy.ts";
import { Usage0018 } from "./migration/0018-usage.ts";
import { Console0019 } from "./migration/0019-console.ts";
import { TaskTerms0020 } from "./migration/0020-task-terms.ts";
import { HoldRequest0021 } from "./migration/0021-hold-request.ts";
import { ConsoleLists0022 } from "./migration/0022-console-lists.ts";
import { CallAttempts0023 } from "./migration/0023-call-attempts.ts";
import { SettleColumns0024 } from "./migration/0024-settle-columns.ts";

export const migrations: readonly MigrationObject[] = [
  { name: "0001-account-key", class: AccountKey0001 },
  { name: "0002-billing", class: Billing0002 },
  { name: "0003-response-state", class: ResponseState0003 },
  { name: "0004-call-dropped", class: CallDropped0004 },
  { name: "0005-money", class: Money0005 },
  { name: "0006-account-key", class: AccountKey0006 },
  { name: "0007-call-price", class: CallPrice0007 },
  { name: "0009-webhook", class: Webhook0009 },
  { name: "0010-task", class: Task0010 },
  { name: "0011-result", class: Result0011 },
  { name: "0012-background", class: Background0012 },
  { name: "0013-task-hint", class: TaskHint0013 },
  { name: "0014-native", class: Native0014 },
  { name: "0016-sign-in", class: SignIn0016 },
  { name: "0017-key-copy", class: KeyCopy0017 },
  { name: "0018-usage", class: Usage0018 },
  { name: "0019-console", class: Console0019 },
  { name: "0020-task-terms", class: TaskTerms0020 },
  { name: "0021-hold-request", class: HoldRequest0021 },
  { name: "0022-console-lists", class: ConsoleLists0022 },
  { name: "0023-call-attempts", class: CallAttempts0023 },
  { name: "0024-settle-columns", class: SettleColumns0024 },
];

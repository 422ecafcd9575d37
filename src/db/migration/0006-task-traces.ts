import type { Migration } from "../migrate.ts";

/** The trace of a submit, to which the traces of its task and webhooks refer. Null without one. */
export const taskTraces0006: Migration = {
  name: "0006-task-traces",
  compatibleFrom: "0001-baseline",
  statements: () => [
    `alter table task add column traceparent text null`,
    `alter table webhook_event add column traceparent text null`,
  ],
};

/** The events of webhook tests: a sample of each status. */
import type { WebhookEvent } from "./enqueue.ts";
import type { WebhookStatus } from "./payload.ts";

/** Options of {@link testEvent}. */
export interface TestOptions {
  readonly accountId: string;
  readonly url: string;
  readonly status: WebhookStatus;
  /** A fresh id in place of a task's. */
  readonly taskId: string;
}

const none = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };

const samples = {
  progress: { progress: 50, resultContent: null, error: null, errorCode: null, usage: none },
  completed: {
    progress: 100,
    resultContent: "This is a test. Ein Test, 测试, тест.",
    error: null,
    errorCode: null,
    usage: { promptTokens: 12, completionTokens: 34, totalTokens: 46 },
  },
  failed: {
    progress: 50,
    resultContent: null,
    error: "This is a test: no task has failed",
    errorCode: "upstream_error",
    usage: none,
  },
  cancelled: { progress: 50, resultContent: null, error: null, errorCode: null, usage: none },
} as const;

/** Creates the event of a test. */
export function testEvent({ accountId, url, status, taskId }: TestOptions): WebhookEvent {
  return {
    ...samples[status],
    accountId,
    taskId,
    url,
    status,
    callbackId: "test",
    modelKey: "test",
    requestId: "test",
    resultUrl: null,
    time: new Date(),
    isTest: true,
  };
}

/**
 * Requests are checked against the rules that the contract declares, before any implementation sees
 * them.
 */
import { createContextValues, type ServiceImpl } from "@connectrpc/connect";
import {
  create,
  type DescMethod,
  type DescService,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it, test } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { NativeService } from "../../../gen/uas/native/v1/native_service_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { ErrorCode, GatewayError } from "../../../src/core/errors.ts";
import { serve } from "../../../src/core/contract-rules.ts";
import { requestCheck } from "../../../src/core/request-rules.ts";

const uuid = "018f2b6e-6f5b-7c3a-9d2e-0123456789ab";
const past = timestampFromMs(1_000);
const later = timestampFromMs(Date.now() + 3_600_000);
const usd = (amountNanos: bigint) => ({ currencyCode: "USD", amountNanos });

/** Returns the problem of a request: parameter and message; undefined if there is none. */
function problemOf<Method extends DescMethod>(
  method: Method,
  init: MessageInitShape<Method["input"]>,
): readonly [param: string | undefined, message: string] | undefined {
  try {
    requestCheck(method)?.(create<Method["input"]>(method.input, init));
    return undefined;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    expect(error.code).toBe(ErrorCode.INVALID_REQUEST);
    return [error.param, error.message];
  }
}

describe("a broken rule is refused with its field and what to do", () => {
  const { listAccounts, createAccount, updateAccount } = AccountService.method;
  const { topUp, adjustBalance, listBalances, listLedgerEntries } = BillingService.method;

  test("a text that is missing, too long, or has more than one line is refused with its field and what to do", () => {
    const name = "name";
    expect(problemOf(createAccount, {})).toEqual([name, "name is required: 1 to 200 characters"]);
    const blank = problemOf(createAccount, { name: "  " });
    expect(blank).toEqual([name, "name is required: 1 to 200 characters"]);
    const long = problemOf(createAccount, { name: "x".repeat(201) });
    expect(long).toEqual([name, "name is 201 characters long: send at most 200"]);
    const oneLine = "name must be one line of text, without control characters";
    expect(problemOf(createAccount, { name: "a\u2028b" })).toEqual([name, oneLine]);
    const notText = "name must be well-formed text without NUL characters";
    expect(problemOf(createAccount, { name: "a\0b" })).toEqual([name, notText]);
    expect(problemOf(createAccount, { name: "\ud800" })).toEqual([name, notText]);
    // As people count: an emoji is one character, and blanks at the ends are none.
    expect(problemOf(createAccount, { name: ` ${"😀".repeat(200)} ` })).toBeUndefined();
  });

  test("an invalid id, choice or value of an enum is refused with its field and what to do", () => {
    const account = { accountId: "A", amount: usd(1n), reference: "r" };
    const id = "account_id must be a UUID in lower case, with dashes";
    expect(problemOf(topUp, account)).toEqual(["account_id", id]);
    const { sendSignInCode } = SessionService.method;
    const language = problemOf(sendSignInCode, { phone: "1", language: "fr" });
    expect(language).toEqual(["language", "language must be one of en, zh"]);
    const state = problemOf(listAccounts, { state: 9 as never });
    expect(state).toEqual(["state", "state must be one of ACTIVE, SUSPENDED, CLOSED, ERASED"]);
  });

  test("an invalid number, amount or moment is refused with its field and what to do", () => {
    const size = problemOf(listAccounts, { pageSize: -1 });
    expect(size).toEqual(["page_size", "page_size is -1: send 0 or more"]);
    const booking = { accountId: uuid, reference: "r", reason: "why" };
    const amounts = [
      [topUp, undefined, "amount is required"],
      [topUp, { currencyCode: "EUR", amountNanos: 1n }, "amount must be in USD"],
      [topUp, usd(0n), "amount must be more than zero"],
      [topUp, usd(10n ** 15n + 1n), "amount must be at most 1000000 USD"],
      [adjustBalance, usd(0n), "amount must not be zero"],
      [adjustBalance, usd(-(10n ** 15n) - 1n), "amount must be at least -1000000 USD"],
    ] as const;
    for (const [method, amount, message] of amounts) {
      const request = { ...booking, ...(amount && { amount }) };
      expect(problemOf(method as typeof topUp, request)).toEqual(["amount", message]);
    }
    const { createKey } = KeyService.method;
    const late = "expire_time must be in the future; to stop a key now, disable it";
    expect(problemOf(createKey, { expireTime: past })).toEqual(["expire_time", late]);
    const never = problemOf(createKey, { expireTime: { seconds: 1n << 60n, nanos: 0 } });
    expect(never).toEqual([
      "expire_time",
      "expire_time must be a time between the years 1 and 9999; to stop a key now, disable it",
    ]);
    expect(problemOf(createKey, { expireTime: later })).toBeUndefined();
  });

  test("an invalid list or entry of it is refused with its field and what to do", () => {
    const many = problemOf(listBalances, { accountIds: Array<string>(1_001).fill(uuid) });
    expect(many).toEqual(["account_ids", "account_ids has 1001 entries: send at most 1000"]);
    const wrong = problemOf(listBalances, { accountIds: [uuid, "x"] });
    const entry = "number 2 must be a UUID in lower case, with dashes";
    expect(wrong).toEqual(["account_ids", `account_ids has an invalid entry: ${entry}`]);
    const kinds = problemOf(listLedgerEntries, { accountId: uuid, kinds: [0] });
    expect(kinds?.[0]).toBe("kinds");
  });

  test("an invalid member inside another message is refused by its own name", () => {
    const problem = problemOf(CallService.method.exportCalls, { filter: { statusMin: 700 } });
    expect(problem).toEqual(["status_min", "status_min is 700: send 0 to 599"]);
  });

  test("an update mask that names nothing, or what cannot be changed, is refused with what to do", () => {
    const members =
      "name, discount_bp, price_list, low_balance_threshold, budgets, alert_url, alert_emails, rate_limits, limit_wait";
    const none = problemOf(updateAccount, { account: { accountId: uuid } });
    const required = `update_mask is required: list the fields to change: ${members}`;
    expect(none).toEqual(["update_mask", required]);
    const other = problemOf(updateAccount, { updateMask: { paths: ["name", "state"] } });
    expect(other?.[0]).toBe("name");
    const named = { account: { name: "n" }, updateMask: { paths: ["name", "state"] } };
    const unknown = `update_mask names "state": the fields that can be changed are ${members}`;
    expect(problemOf(updateAccount, named)).toEqual(["update_mask", unknown]);
  });
});

test("only the members that an update mask names are checked: a resource can be sent back as it was read", () => {
  const key = { keyId: uuid, name: "new", expireTime: past };
  const { updateKey } = KeyService.method;
  expect(problemOf(updateKey, { key, updateMask: { paths: ["name"] } })).toBeUndefined();
  const both = problemOf(updateKey, { key, updateMask: { paths: ["name", "expire_time"] } });
  expect(both?.[0]).toBe("expire_time");
  // A member that is named and not there is cleared.
  expect(problemOf(updateKey, { key: {}, updateMask: { paths: ["expire_time"] } })).toBeUndefined();
  const account = { account: {}, updateMask: { paths: ["name"] } };
  expect(problemOf(AccountService.method.updateAccount, account)?.[0]).toBe("name");
});

test("errors of platform routes name the members that customers send", () => {
  const { getTask, listTasks, submitTask } = TaskService.method;
  expect(problemOf(submitTask, {})?.[0]).toBe("modelKey");
  expect(problemOf(submitTask, { modelKey: "m", callbackId: "" })?.[0]).toBe("callbackId");
  expect(problemOf(listTasks, { pageSize: -1 })?.[0]).toBe("pageSize");
  const wait = "wait is 61: send 0 to 60; it is a number of seconds";
  expect(problemOf(getTask, { wait: 61 })).toEqual(["wait", wait]);
});

type Run = (request: object, context: object) => unknown;

/** The implementation of a method as it is served. */
function served(method: DescMethod, run: Run): Run {
  const alone = { [method.localName]: run } as unknown as ServiceImpl<DescService>;
  const { implementation } = serve(method.parent, alone);
  return implementation[method.localName] as unknown as Run;
}

/** As an edge passes it. */
const context = { values: createContextValues() };

const neverCalled: Run = () => {
  throw new Error("not called");
};

test("of fields that exclude each other exactly one is required, and it must say something", () => {
  const { getCall } = CallService.method;
  const fix = "Send one of call_id and request_id";
  expect(problemOf(getCall, {})).toEqual([undefined, fix]);
  expect(problemOf(getCall, { call: { case: "requestId", value: "" } })).toEqual([undefined, fix]);
  expect(problemOf(getCall, { call: { case: "callId", value: "x" } })?.[0]).toBe("call_id");
  expect(problemOf(getCall, { call: { case: "callId", value: uuid } })).toBeUndefined();
  const params = problemOf(TaskService.method.submitTask, { modelKey: "m" });
  const all = "textParams, imageParams, videoParams and audioParams";
  expect(params).toEqual([undefined, `Send one of ${all}`]);
});

test("calls to models have no rules, and their implementations are called as they are", () => {
  const hot: readonly DescMethod[] = [
    InferenceService.method.exchange,
    InferenceService.method.generate,
    InferenceService.method.streamGenerate,
    InferenceService.method.embed,
    InferenceService.method.countTokens,
    ...NativeService.methods,
  ];
  for (const method of hot) {
    expect(requestCheck(method), method.name).toBeUndefined();
    expect(served(method, neverCalled)).toBe(neverCalled);
  }
});

describe("serve", () => {
  it("refuses before the implementation runs, streams included", () => {
    const method = CallService.method.exportCalls;
    const request = create(method.input, { accountId: "x" });
    expect(() => served(method, neverCalled)(request, context)).toThrow(
      "account_id must be a UUID",
    );
  });

  it("calls an implementation with requests that break no rule", () => {
    const method = WebhookService.method.listEndpoints;
    const request = create(method.input, { pageSize: 1 });
    expect(served(method, () => "seen")(request, context)).toBe("seen");
  });
});

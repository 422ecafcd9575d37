import { getOption } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { Access, access, permission } from "../../gen/uas/http/v1/http_pb.ts";
import { permissions } from "../../src/core/permissions.ts";
import { findMethods } from "./services.ts";

/** The RPCs of each permission of service credentials. Calls to models are not among them. */
const golden: Readonly<Record<string, readonly string[]>> = {
  "accounts:erase": ["account.v1.AccountService/EraseAccount"],
  "accounts:read": [
    "account.v1.AccountService/ListAccounts",
    "account.v1.AccountService/GetAccount",
  ],
  "accounts:write": [
    "account.v1.AccountService/CreateAccount",
    "account.v1.AccountService/UpdateAccount",
    "account.v1.AccountService/SuspendAccount",
    "account.v1.AccountService/ResumeAccount",
    "account.v1.AccountService/CloseAccount",
  ],
  "audit:read": ["operator.v1.OperatorService/ListAuditEntries"],
  "billing:read": [
    "billing.v1.BillingService/GetBalance",
    "billing.v1.BillingService/ListBalances",
    "billing.v1.BillingService/ListLedgerEntries",
    "billing.v1.BillingService/GetPrice",
    "billing.v1.BillingService/ListPrices",
    "billing.v1.BillingService/AuditLedger",
    "billing.v1.RedeemService/ListRedeemCodes",
  ],
  "billing:write": [
    "billing.v1.BillingService/TopUp",
    "billing.v1.BillingService/Refund",
    "billing.v1.BillingService/AdjustBalance",
    "billing.v1.BillingService/AcceptLedger",
    "billing.v1.RedeemService/CreateRedeemCodes",
    "billing.v1.RedeemService/RevokeRedeemCode",
    "billing.v1.RedeemService/Redeem",
  ],
  "calls:read": [
    "billing.v1.CallService/ListCalls",
    "billing.v1.CallService/GetCall",
    "billing.v1.CallService/GetCallHistogram",
    "billing.v1.CallService/TailCalls",
    "billing.v1.CallService/ExportCalls",
  ],
  "config:read": [
    "config.v1.ConfigService/GetConfig",
    "config.v1.ConfigService/CheckConfig",
    "config.v1.ConfigService/PlanConfig",
    "config.v1.ConfigService/ListRevisions",
    "config.v1.ConfigService/GetRevision",
    "config.v1.ConfigService/ListSecrets",
  ],
  "config:write": [
    "config.v1.ConfigService/ApplyConfig",
    "config.v1.ConfigService/RollBackConfig",
    "config.v1.ConfigService/ReloadConfig",
    "config.v1.ConfigService/SetSecret",
    "config.v1.ConfigService/DeleteSecret",
  ],
  "keys:read": ["key.v1.KeyService/ListKeys", "key.v1.KeyService/GetKey"],
  "keys:write": [
    "key.v1.KeyService/CreateKey",
    "key.v1.KeyService/UpdateKey",
    "key.v1.KeyService/EnableKey",
    "key.v1.KeyService/DisableKey",
    "key.v1.KeyService/DeleteKey",
  ],
  "models:read": [
    "inference.v1.InferenceService/ListModels",
    "inference.v1.InferenceService/GetModel",
    "task.v1.TaskService/GetModelSchema",
  ],
  "system:read": [
    "operator.v1.OperatorService/GetActiveAlerts",
    "operator.v1.OperatorService/GetSystemInfo",
  ],
  "system:write": ["operator.v1.OperatorService/TestAlerts"],
  "tasks:read": [
    "task.v1.TaskService/GetTask",
    "task.v1.TaskService/WatchTask",
    "task.v1.TaskService/ListTasks",
  ],
  "tasks:write": ["task.v1.TaskService/CancelTask"],
  "usage:read": ["billing.v1.UsageService/GetUsageSeries"],
  "users:read": ["account.v1.UserService/ListUsers"],
  "users:write": [
    "account.v1.UserService/CreateUser",
    "account.v1.UserService/DeleteUser",
    "account.v1.UserService/CreateSignInLink",
  ],
  "vendors:read": [
    "operator.v1.OperatorService/ListVendors",
    "operator.v1.OperatorService/ListConfiguredModels",
    "operator.v1.RouteService/GetRouteHealth",
  ],
  "vendors:write": [
    "operator.v1.OperatorService/TestVendor",
    "operator.v1.OperatorService/ClearUnlimitedModel",
  ],
  "webhooks:read": [
    "webhook.v1.WebhookService/ListDeliveries",
    "webhook.v1.WebhookService/GetDelivery",
    "webhook.v1.WebhookService/ListEndpoints",
  ],
  "webhooks:write": [
    "webhook.v1.WebhookService/GetSecret",
    "webhook.v1.WebhookService/RotateSecret",
    "webhook.v1.WebhookService/PromoteSecret",
    "webhook.v1.WebhookService/ResendDelivery",
    "webhook.v1.WebhookService/ResendFailed",
    "webhook.v1.WebhookService/SendTestEvent",
    "webhook.v1.WebhookService/ReenableEndpoint",
  ],
};

test("R-AUTH-6: a permission of a service credential reaches the agreed RPCs only", async () => {
  const reached = new Map<string, string[]>();
  for (const { name, method } of await findMethods()) {
    const word = getOption(method, permission);
    if (word !== "") reached.set(word, [...(reached.get(word) ?? []), name]);
  }
  const sorted = (lists: Iterable<readonly [string, readonly string[]]>) =>
    Object.fromEntries([...lists].map(([word, names]) => [word, names.toSorted()]));
  expect(sorted(reached)).toEqual(sorted(Object.entries(golden)));
  expect([...reached.keys()].toSorted()).toEqual(Object.keys(permissions).toSorted());
});

test("R-AUTH-6: an RPC with a permission is open to operators", async () => {
  const open: readonly Access[] = [Access.SESSION, Access.CUSTOMER, Access.OPERATOR];
  const withPermission = (await findMethods()).filter(
    ({ method }) => getOption(method, permission) !== "",
  );
  const others = withPermission.filter(({ method }) => !open.includes(getOption(method, access)));
  expect(others.map(({ name }) => name)).toEqual([]);
});

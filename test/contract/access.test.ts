import { getOption } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { Access, access } from "../../gen/uas/http/v1/http_pb.ts";
import { findMethods } from "./services.ts";

/**
 * Access to each RPC. A key reaches inference, models, native and tasks, and reads about itself;
 * ledger and keys need more.
 */
const golden: Readonly<Record<string, keyof typeof Access>> = {
  "account.v1.AccountService/ListAccounts": "OPERATOR",
  "account.v1.AccountService/GetAccount": "SESSION",
  "account.v1.AccountService/CreateAccount": "OPERATOR",
  "account.v1.AccountService/UpdateAccount": "SESSION",
  "account.v1.AccountService/SuspendAccount": "OPERATOR",
  "account.v1.AccountService/ResumeAccount": "OPERATOR",
  "account.v1.SessionService/GetSignInOptions": "PUBLIC",
  "account.v1.SessionService/SendSignInCode": "PUBLIC",
  "account.v1.SessionService/SignInWithCode": "PUBLIC",
  "account.v1.SessionService/SignInWithPassword": "PUBLIC",
  "account.v1.SessionService/SignInWithLink": "PUBLIC",
  "account.v1.SessionService/SignOut": "SESSION",
  "account.v1.SessionService/GetSession": "SESSION",
  "account.v1.SessionService/ListSessions": "SESSION",
  "account.v1.SessionService/RevokeSession": "SESSION",
  "account.v1.SessionService/RevokeOtherSessions": "SESSION",
  "account.v1.SessionService/SendActionCode": "SESSION",
  "account.v1.UserService/ListUsers": "OPERATOR",
  "account.v1.UserService/CreateUser": "OPERATOR",
  "account.v1.UserService/DeleteUser": "OPERATOR",
  "account.v1.UserService/CreateSignInLink": "OPERATOR",
  "account.v1.UserService/UpdateUser": "SESSION",
  "account.v1.UserService/SetPassword": "SESSION",
  "account.v1.UserService/SendPhoneCode": "SESSION",
  "account.v1.UserService/SetPhone": "SESSION",
  "account.v1.UserService/StartTotp": "SESSION",
  "account.v1.UserService/ConfirmTotp": "SESSION",
  "account.v1.UserService/RemoveTotp": "SESSION",
  "billing.v1.BillingService/GetBalance": "SESSION",
  "billing.v1.BillingService/GetCredits": "KEY",
  "billing.v1.BillingService/ListBalances": "OPERATOR",
  "billing.v1.BillingService/TopUp": "OPERATOR",
  "billing.v1.BillingService/Refund": "OPERATOR",
  "billing.v1.BillingService/AdjustBalance": "OPERATOR",
  "billing.v1.BillingService/AcceptLedger": "OPERATOR",
  "billing.v1.BillingService/ListLedgerEntries": "SESSION",
  "billing.v1.BillingService/GetPrice": "SESSION",
  "billing.v1.BillingService/ListPrices": "SESSION",
  "billing.v1.BillingService/AuditLedger": "OPERATOR",
  "billing.v1.CallService/ListCalls": "SESSION",
  "billing.v1.CallService/GetCall": "SESSION",
  "billing.v1.CallService/GetCallHistogram": "SESSION",
  "billing.v1.CallService/TailCalls": "SESSION",
  "billing.v1.CallService/ExportCalls": "SESSION",
  "billing.v1.RedeemService/CreateRedeemCodes": "OPERATOR",
  "billing.v1.RedeemService/ListRedeemCodes": "OPERATOR",
  "billing.v1.RedeemService/RevokeRedeemCode": "OPERATOR",
  "billing.v1.RedeemService/Redeem": "SESSION",
  "billing.v1.UsageService/GetUsageSeries": "SESSION",
  "inference.v1.InferenceService/Exchange": "KEY",
  "inference.v1.InferenceService/CountTokens": "KEY",
  "inference.v1.InferenceService/Complete": "KEY",
  "inference.v1.InferenceService/Embed": "KEY",
  "inference.v1.InferenceService/Moderate": "KEY",
  "inference.v1.InferenceService/Rerank": "KEY",
  "inference.v1.MediaService/ExchangeMedia": "KEY",
  "inference.v1.InferenceService/Generate": "KEY",
  "inference.v1.InferenceService/ListModels": "CUSTOMER",
  "inference.v1.InferenceService/StreamGenerate": "KEY",
  "inference.v1.InferenceService/GetModel": "CUSTOMER",
  "inference.v1.ResponseService/GetResponse": "KEY",
  "inference.v1.ResponseService/StreamResponse": "KEY",
  "inference.v1.ResponseService/CancelResponse": "KEY",
  "inference.v1.ResponseService/DeleteResponse": "KEY",
  "inference.v1.ResponseService/ListInputItems": "KEY",
  "key.v1.KeyService/ListKeys": "SESSION",
  "key.v1.KeyService/GetKey": "SESSION",
  "key.v1.KeyService/GetCurrentKey": "KEY",
  "key.v1.KeyService/CreateKey": "SESSION",
  "key.v1.KeyService/UpdateKey": "SESSION",
  "key.v1.KeyService/EnableKey": "SESSION",
  "key.v1.KeyService/DisableKey": "SESSION",
  "key.v1.KeyService/DeleteKey": "SESSION",
  "key.v1.KeyService/RevealKey": "SESSION",
  "native.v1.NativeService/Exchange": "KEY",
  "native.v1.NativeService/FollowLink": "PUBLIC",
  "config.v1.ConfigService/GetConfig": "OPERATOR",
  "config.v1.ConfigService/CheckConfig": "OPERATOR",
  "config.v1.ConfigService/PlanConfig": "OPERATOR",
  "config.v1.ConfigService/ApplyConfig": "OPERATOR",
  "config.v1.ConfigService/RollBackConfig": "OPERATOR",
  "config.v1.ConfigService/ReloadConfig": "OPERATOR",
  "config.v1.ConfigService/ListRevisions": "OPERATOR",
  "config.v1.ConfigService/GetRevision": "OPERATOR",
  "config.v1.ConfigService/SetSecret": "OPERATOR",
  "config.v1.ConfigService/ListSecrets": "OPERATOR",
  "config.v1.ConfigService/DeleteSecret": "OPERATOR",
  "operator.v1.OperatorService/ListAuditEntries": "OPERATOR",
  "operator.v1.OperatorService/ListVendors": "OPERATOR",
  "operator.v1.OperatorService/TestVendor": "OPERATOR",
  "operator.v1.OperatorService/ClearUnlimitedModel": "OPERATOR",
  "operator.v1.OperatorService/ListConfiguredModels": "OPERATOR",
  "operator.v1.OperatorService/GetActiveAlerts": "OPERATOR",
  "operator.v1.OperatorService/TestAlerts": "OPERATOR",
  "operator.v1.OperatorService/GetSystemInfo": "OPERATOR",
  "operator.v1.RouteService/GetRouteHealth": "OPERATOR",
  "task.v1.TaskService/SubmitTask": "KEY",
  "task.v1.TaskService/GetTask": "CUSTOMER",
  "task.v1.TaskService/CancelTask": "CUSTOMER",
  "task.v1.TaskService/WatchTask": "CUSTOMER",
  "task.v1.TaskService/ListTasks": "CUSTOMER",
  "task.v1.TaskService/GetModelSchema": "CUSTOMER",
  "webhook.v1.WebhookService/GetSecret": "SESSION",
  "webhook.v1.WebhookService/RotateSecret": "SESSION",
  "webhook.v1.WebhookService/PromoteSecret": "SESSION",
  "webhook.v1.WebhookService/ListDeliveries": "SESSION",
  "webhook.v1.WebhookService/GetDelivery": "SESSION",
  "webhook.v1.WebhookService/ResendDelivery": "SESSION",
  "webhook.v1.WebhookService/ResendFailed": "SESSION",
  "webhook.v1.WebhookService/SendTestEvent": "SESSION",
  "webhook.v1.WebhookService/ListEndpoints": "SESSION",
  "webhook.v1.WebhookService/ReenableEndpoint": "SESSION",
};

test("R-AUTH-6: every RPC declares who may call it, as agreed", async () => {
  const methods = await findMethods();
  const words = new Map<number, string>(
    Object.entries(Access).map(([word, number]) => [number, word]),
  );
  const declared = methods.map(({ name, method }) => [name, words.get(getOption(method, access))]);
  expect(Object.fromEntries(declared)).toEqual(golden);
});

const aboutItself = ["billing.v1.BillingService/GetCredits", "key.v1.KeyService/GetCurrentKey"];

test("R-AUTH-6: an API key reaches inference, vendors' own interfaces, tasks and itself only", () => {
  const reached = Object.keys(golden).filter((name) =>
    /^(?:KEY|CUSTOMER)$/.test(golden[name] ?? ""),
  );
  const others = reached.filter((name) => !/^(?:inference|native|task)\./.test(name));
  expect(others.toSorted()).toEqual(aboutItself);
});

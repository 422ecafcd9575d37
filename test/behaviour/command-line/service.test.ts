import type { ConnectRouter } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import {
  type CreateServiceCredentialRequest,
  type RotateServiceCredentialRequest,
  ServiceCredentialService,
} from "../../../gen/uas/operator/v1/service_credential_service_pb.ts";
import { createTime } from "./sample.ts";
import { run, runJson } from "./support.ts";

const serviceCredential = {
  name: "reports",
  permissions: ["calls:read", "usage:read"],
  maskedSecret: "uas_svc_…wxyz",
  createTime,
};

it("service create and rotate print the secret, and list never does", async () => {
  const created: CreateServiceCredentialRequest[] = [];
  const rotated: RotateServiceCredentialRequest[] = [];
  const world = {
    routes: (router: ConnectRouter) =>
      void router.service(ServiceCredentialService, {
        createServiceCredential: (request) => {
          created.push(request);
          return { serviceCredential, secret: "uas_svc_first" };
        },
        rotateServiceCredential: (request) => {
          rotated.push(request);
          return { serviceCredential, secret: "uas_svc_second" };
        },
        listServiceCredentials: () => ({ serviceCredentials: [serviceCredential] }),
      }),
  };
  const create = ["service", "create", "reports", "--permissions", "usage:read,calls:read"];
  expect((await run(create, world)).out).toBe("uas_svc_first\n");
  expect(created[0]?.permissions).toEqual(["usage:read", "calls:read"]);
  const rotate = ["service", "rotate", "reports", "--overlap", "2h"];
  expect((await run(rotate, world)).out).toBe("uas_svc_second\n");
  expect(rotated[0]?.overlap?.seconds).toBe(7_200n);
  expect((await runJson(["service", "list"], world)).json).toMatchObject([
    { name: "reports", state: "enabled", secretHint: "uas_svc_…wxyz" },
  ]);
});

it("account erase does nothing without --yes, and names the account", async () => {
  const erased: string[] = [];
  const account = { accountId: "id-1", name: "Example Ltd", state: AccountState.CLOSED };
  const world = {
    routes: (router: ConnectRouter) =>
      void router.service(AccountService, {
        getAccount: () => ({ account }),
        eraseAccount: ({ accountId }) => {
          erased.push(accountId);
          return { account: { ...account, state: AccountState.ERASED } };
        },
      }),
  };
  const refused = await run(["account", "erase", "id-1"], world);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('"Example Ltd" without return: repeat the command with --yes');
  expect(erased).toEqual([]);
  expect((await runJson(["account", "erase", "id-1", "--yes"], world)).json).toMatchObject({
    state: "erased",
  });
  expect(erased).toEqual(["id-1"]);
});

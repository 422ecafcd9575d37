/** Two real processes of one database: service credentials, their permissions and their end. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { send } from "../../support/raw-http.ts";
import { openServed, type Served, type ServedProcess } from "./served.ts";
import { operate } from "./workers-rig.ts";

let served: Served;
let processes: readonly [ServedProcess, ServedProcess];

beforeAll(async () => {
  served = await openServed();
  const tokens = { UAS_OPERATOR_TOKEN: "operator-canary-new1,operator-canary-77aa" };
  processes = [await served.start(tokens), await served.start()];
});
afterAll(() => served?.close());

const credentials = "uas.operator.v1.ServiceCredentialService";
const usage = "uas.billing.v1.UsageService/GetUsageSeries";
const accounts = "uas.account.v1.AccountService";
const range = { fromTime: "2026-01-01T00:00:00Z", toTime: "2026-01-02T00:00:00Z", bucket: "DAY" };

async function create(name: string, ...permissions: string[]): Promise<string> {
  const request = { name, permissions };
  const made = await operate(processes[0], `${credentials}/CreateServiceCredential`, request);
  return (made as { secret: string }).secret;
}

async function call(
  secret: string,
  method: string,
  { request = {}, url = processes[1].internalUrl }: { request?: object; url?: string } = {},
) {
  const reply = await send(`${url}/${method}`, {
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  return { status: reply.status, body: reply.body.toString() };
}

it("a service credential reaches the RPCs of its permissions only, and the refusal names the missing one", async () => {
  const secret = await create("reports", "usage:read");
  expect(secret).toMatch(/^uas_svc_[A-Za-z0-9]{32}$/);
  const bucket = { ...range, bucket: "TIME_BUCKET_DAY" };
  expect(await call(secret, usage, { request: bucket })).toMatchObject({ status: 200 });
  const refused = await call(secret, `${accounts}/CreateAccount`, { request: { name: "x" } });
  expect(refused.status).toBe(403);
  expect(refused.body).toContain("needs the permission accounts:write");
  const itself = await call(secret, `${credentials}/ListServiceCredentials`);
  expect(itself.status).toBe(403);
  expect(itself.body).toContain("not available to service credentials");
  const outside = { url: processes[1].url };
  expect(await call(secret, usage, outside)).toMatchObject({ status: 401 });
});

it("a service credential cannot become an operator", async () => {
  const secret = await create("people", "users:write", "accounts:write");
  const users = "uas.account.v1.UserService";
  const link = await call(secret, `${users}/CreateSignInLink`, { request: {} });
  const { accountId } = await served.customer();
  const request = { accountId, name: "x", role: "USER_ROLE_OPERATOR", phone: "+4915112345678" };
  const user = await call(secret, `${users}/CreateUser`, { request });
  for (const { status, body } of [link, user]) {
    expect(status).toBe(403);
    expect(body).toContain("cannot create, delete or sign in operators");
  }
});

it("the audit log names the service", async () => {
  const secret = await create("shop", "accounts:write");
  expect(await call(secret, `${accounts}/CreateAccount`, { request: { name: "x" } })).toMatchObject(
    { status: 200 },
  );
  const { rows } = await served.pool.query(
    "select action from audit_entry where actor = 'service shop'",
  );
  expect(rows).toEqual([{ action: "account.create" }]);
});

it("a service credential that is disabled or deleted in one process is refused by the next request to another", async () => {
  const secret = await create("short", "accounts:read");
  const status = async () => (await call(secret, `${accounts}/ListAccounts`)).status;
  const change = (verb: string) =>
    operate(processes[0], `${credentials}/${verb}ServiceCredential`, { name: "short" });
  expect(await status()).toBe(200);
  await change("Disable");
  expect(await status()).toBe(401);
  await change("Enable");
  expect(await status()).toBe(200);
  await change("Delete");
  expect(await status()).toBe(401);
});

it("a replaced secret stays valid for its overlap, and an expired credential is refused", async () => {
  const first = await create("rotated", "accounts:read");
  const rotate = async (overlap: string) => {
    const request = { name: "rotated", overlap };
    const made = await operate(processes[0], `${credentials}/RotateServiceCredential`, request);
    return (made as { secret: string }).secret;
  };
  const statuses = (...secrets: string[]) =>
    Promise.all(
      secrets.map(async (secret) => (await call(secret, `${accounts}/ListAccounts`)).status),
    );
  const second = await rotate("3600s");
  expect(await statuses(first, second)).toEqual([200, 200]);
  const third = await rotate("0s");
  expect(await statuses(first, second, third)).toEqual([401, 401, 200]);
  const text = "update service_credential set expire_time = now() where name = 'rotated'";
  await served.pool.query(text);
  expect(await statuses(third)).toEqual([401]);
});

it("two operator tokens are accepted while one replaces the other", async () => {
  const at = { url: processes[0].internalUrl };
  for (const token of ["operator-canary-new1", "operator-canary-77aa"]) {
    expect(await call(token, `${accounts}/ListAccounts`, at)).toMatchObject({ status: 200 });
  }
  const both = "operator-canary-new1,operator-canary-77aa";
  expect(await call(both, `${accounts}/ListAccounts`, at)).toMatchObject({ status: 401 });
});

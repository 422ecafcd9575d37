import { expect, test } from "vitest";
import { publicModel } from "../../support/gateway.ts";
import { bearer, operatorToken, useGateway } from "./harness.ts";

const fixture = useGateway();

const get = (query: string, key?: string): Promise<Response> =>
  fetch(`${fixture.gateway.internalUrl}/export/${query}`, { headers: key ? bearer(key) : {} });

async function call(): Promise<void> {
  const { gateway, customer } = fixture;
  const headers = {
    ...bearer(customer.key),
    "content-type": "application/json",
    "x-request-id": "exported",
  };
  const messages = [{ role: "user", content: "x" }];
  const body = JSON.stringify({ model: publicModel, messages });
  await (
    await fetch(`${gateway.url}/v1/chat/completions`, { method: "POST", headers, body })
  ).text();
  await gateway.call("exported");
}

test("an operator downloads calls as CSV or JSON lines, of one account or all", async () => {
  await call();
  const { accountId } = fixture.customer;
  const reply = await get(`calls.csv?account=${accountId}&from=2026-01-01`, operatorToken);
  expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "text/csv"]);
  const [head, line] = (await reply.text()).split("\r\n");
  expect(head).toMatch(/^startedAt,callId,requestId/);
  expect(line).toContain(",exported,");
  const lines = await (await get("calls.jsonl", operatorToken)).text();
  const calls = lines
    .trim()
    .split("\n")
    .map((each) => JSON.parse(each) as Line);
  expect(calls).toMatchObject([{ requestId: "exported", accountId, vendorCost: null }]);
  const future = await get("calls.jsonl?from=2999-01-01", operatorToken);
  expect(await future.text()).toBe("");
});

interface Line {
  readonly requestId: string;
}

test("the download is refused without the operator token, and with a time that is none", async () => {
  expect((await get("calls.csv")).status).toBe(401);
  expect((await get("calls.csv", fixture.customer.key)).status).toBe(403);
  const wrong = await get("calls.csv?from=yesterday", operatorToken);
  expect(wrong.status).toBe(400);
  expect(await wrong.text()).toContain("from must be a time such as 2026-11-01");
  expect((await get("tasks.csv", operatorToken)).status).toBe(404);
});

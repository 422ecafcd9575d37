/**
 * Several credentials of a vendor of jobs: a job stays with the one that submitted it, and refused
 * ones are avoided.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { CredentialConfig } from "../../../src/config/config.ts";
import { type Customer, type Gateway, priceDefault, startGateway } from "../../support/gateway.ts";
import { often } from "./native-vendor.ts";

/** A vendor of predictions, each of which only the key that made it can see. */
async function startKeyedVendor() {
  const owners = new Map<string, string>();
  const revoked = new Set<string>();
  const strangers: string[] = [];
  let origin = "";
  const server = createServer((request, response) => {
    request.resume();
    const key = (request.headers.authorization ?? "").replace("Bearer ", "");
    const send = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (request.url === "/files/a.png") {
      response.writeHead(200, { "content-type": "image/png" }).end(png);
      return;
    }
    if (revoked.has(key)) return send(401, { detail: "revoked" });
    const [, id] = /^\/v1\/predictions\/(p\d+)/.exec(request.url ?? "") ?? [];
    const made = id ?? `p${owners.size + 1}`;
    if (id === undefined) owners.set(made, key);
    else if (owners.get(id) !== key) {
      strangers.push(`${key} ${request.url}`);
      return send(404, { detail: "not found" });
    }
    const output = id === undefined ? null : [`${origin}/files/a.png`];
    const at = `${origin}/v1/predictions/${made}`;
    send(id === undefined ? 201 : 200, {
      id: made,
      status: id === undefined ? "starting" : "succeeded",
      ...{ input: {}, output, error: null, urls: { get: at, cancel: `${at}/cancel` } },
      ...{ metrics: {}, created_at: "2026-01-01T00:00:00Z", started_at: null, completed_at: null },
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { origin, owners, revoked, strangers, close };
}

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const credential = (name: string): CredentialConfig => ({
  ...{ name, apiKey: `secret-${name}`, weight: 1, priority: 0 },
});

let vendor: Awaited<ReturnType<typeof startKeyedVendor>>;
let gateway: Gateway;
let customer: Customer;
beforeAll(async () => {
  vendor = await startKeyedVendor();
  gateway = await startGateway({
    taskTimings: often,
    vendors: {
      replicate: {
        kind: "replicate",
        baseUrl: vendor.origin,
        credentials: [credential("K1"), credential("K2"), credential("K3")],
        nativePrefix: "/replicate",
      },
    },
    models: {
      flux: {
        type: ModelType.IMAGE,
        routes: [{ vendor: "replicate", model: "labs/flux" }],
        maxOutputTokens: 0,
        price: { ...priceDefault, input: undefined, output: undefined, image: 3_000_000n },
      },
    },
  });
  customer = await gateway.customer();
});
afterAll(async () => {
  await gateway.close();
  await vendor.close();
});
beforeEach(() => vendor.revoked.clear());

function ask(path: string, body?: object): Promise<Response> {
  const headers = {
    authorization: `Bearer ${customer.key}`,
    ...(body && { "content-type": "application/json" }),
  };
  const sent = body && { method: "POST", body: JSON.stringify(body) };
  return fetch(`${gateway.url}${path}`, { headers, ...sent });
}

const input = { prompt: "a lighthouse" };

async function completeTask(): Promise<void> {
  const made = await ask("/api/ai/tasks", { modelKey: "flux", imageParams: input });
  const { taskId } = (await made.json()) as { taskId: string };
  await expect
    .poll(async () => (await (await ask(`/api/ai/tasks/${taskId}`)).json()) as object, {
      timeout: 30_000,
    })
    .toMatchObject({ status: "completed" });
}

test("tasks use all credentials, and each is polled with the one that submitted it", async () => {
  await Promise.all(Array.from({ length: 12 }, completeTask));
  expect(new Set(vendor.owners.values()).size).toBeGreaterThan(1);
  expect(vendor.strangers).toEqual([]);
});

test("a task whose credential is revoked is submitted with another one at once", async () => {
  vendor.revoked.add("secret-K1").add("secret-K2");
  vendor.owners.clear();
  await Promise.all(Array.from({ length: 4 }, completeTask));
  expect([...vendor.owners.values()]).toEqual(Array.from({ length: 4 }, () => "secret-K3"));
});

test("a native job is polled and cancelled with the credential that submitted it", async () => {
  vendor.owners.clear();
  const ids = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const made = await ask("/replicate/v1/models/labs/flux/predictions", { input });
      expect(made.status).toBe(201);
      return ((await made.json()) as { id: string }).id;
    }),
  );
  for (const id of ids) {
    expect((await ask(`/replicate/v1/predictions/${id}`)).status).toBe(200);
    expect((await ask(`/replicate/v1/predictions/${id}/cancel`, {})).status).toBe(200);
  }
  expect(vendor.strangers).toEqual([]);
});

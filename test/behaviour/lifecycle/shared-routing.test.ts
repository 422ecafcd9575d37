/**
 * Three real processes of one database: limits and conversations are those of all of them, breakers
 * are local.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { send } from "../../support/raw-http.ts";
import {
  completes,
  refuses,
  type RoutingVendor,
  startVendor,
} from "../../support/routing-vendor.ts";
import { openServed, type Served, type ServedProcess } from "./served.ts";
import { operate, readMetrics } from "./workers-rig.ts";

let served: Served;
let processes: readonly [ServedProcess, ServedProcess, ServedProcess];
let [first, backup]: readonly RoutingVendor[] = [];

beforeAll(async () => {
  const vendors = [await startVendor(), await startVendor()] as const;
  [first, backup] = vendors;
  served = await openServed();
  served.configure(() => configuration(...vendors));
  const start = () => served.start({ VENDOR_A: "a", VENDOR_B: "b", VENDOR_C: "c" });
  processes = [await start(), await start(), await start()];
});
beforeEach(() => {
  for (const vendor of [first, backup]) {
    if (vendor === undefined) continue;
    vendor.requests.length = 0;
    vendor.answer = completes;
  }
});
afterAll(async () => {
  await served?.close();
  await first?.close();
  await backup?.close();
});

function configuration(vendor: RoutingVendor, other: RoutingVendor): string {
  const model = (name: string, ...routes: readonly string[]): string =>
    `  ${name}: { type: TEXT, routes: [${routes.join(", ")}], max_output_tokens: 100, price: { input: "0.25", output: "2.00" } }`;
  const credentials = ["A", "B", "C"].map((name) => `{ api_key: "\${env:VENDOR_${name}}" }`);
  const backupRoute = "{ vendor: backup, model: backup }";
  return [
    "version: 1",
    "vendors:",
    `  first: { kind: openai-compatible, base_url: "${vendor.baseUrl}", breaker: { cooldown: 1h }, credentials: [${credentials.join(", ")}] }`,
    `  backup: { kind: openai-compatible, base_url: "${other.baseUrl}" }`,
    "models:",
    ...["dead", "refused"].map((name) =>
      model(name, `{ vendor: first, model: ${name} }`, backupRoute),
    ),
    model("chat", "{ vendor: first, model: chat }"),
    model("free", backupRoute),
    "",
  ].join("\n");
}

interface Ask {
  readonly key: string;
  readonly model: string;
  readonly messages?: readonly object[];
}

async function ask(process: ServedProcess, { key, model, messages }: Ask) {
  const reply = await send(`${process.url}/v1/chat/completions`, {
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: messages ?? [{ role: "user", content: "Hello" }] }),
  });
  return { status: reply.status, route: reply.headers["x-uas-route"] };
}

const states = { closed: 0, open: 2 } as const;

/** The state of the breaker of a route in a process. */
async function breakerOf(process: ServedProcess, model: string): Promise<number> {
  const name = `uas_breaker_state{vendor="first",model="${model}",credential=""}`;
  return (await readMetrics(process)).get(name) ?? 0;
}

it("a breaker is local to its process, and operators see the attempts of all (R-RTE-1, R-RTE-3)", async () => {
  const { key } = await served.customer();
  if (first === undefined) throw new Error("not started");
  first.answer = refuses(500);
  // The first failure is repeated: five requests.
  for (let call = 0; call < 4; call++) await ask(processes[0], { key, model: "dead" });
  expect(first.requests).toHaveLength(5);
  expect(await breakerOf(processes[0], "dead")).toBe(states.open);
  expect(await breakerOf(processes[1], "dead")).toBe(states.closed);
  expect(await ask(processes[0], { key, model: "dead" })).toEqual({
    status: 200,
    route: "backup/backup",
  });
  expect(first.requests).toHaveLength(5);
  const listed = JSON.stringify(
    await operate(processes[2], "uas.operator.v1.RouteService/GetRouteHealth", {}),
  );
  expect(listed).toContain("BREAKER_STATE_OPEN");
});

it("each process leaves a refused credential after its first refusal, and no call fails", async () => {
  const { key } = await served.customer();
  if (first === undefined) throw new Error("not started");
  first.answer = (request) => (request.key === "a" ? refuses(401) : completes)(request);
  const replies: { readonly status: number; readonly route: unknown }[] = [];
  for (const process of processes) {
    for (let at = 0; at < 20; at++) {
      const messages = [{ role: "user", content: `Question ${at}` }];
      replies.push(await ask(process, { key, model: "refused", messages }));
    }
  }
  expect(replies.every(({ route }) => route === "first/refused")).toBe(true);
  expect(first.requests.filter((request) => request.key === "a")).toHaveLength(3);
});

it("of 600 calls over three processes, a limit of 100 per minute lets exactly 100 through", async () => {
  const { accountId, key } = await served.customer();
  await operate(processes[0], "uas.account.v1.AccountService/UpdateAccount", {
    account: { accountId, rateLimits: { rpm: 100 } },
    updateMask: "rateLimits",
  });
  // A key that no process knows yet: its limits are those of now.
  const created = await operate(processes[0], "uas.key.v1.KeyService/CreateKey", { accountId });
  const { secret } = created as { readonly secret: string };
  expect(secret).not.toBe(key);
  const replies = await Promise.all(
    Array.from({ length: 600 }, (_, at) =>
      ask(processes[at % 3] ?? processes[0], { key: secret, model: "free" }),
    ),
  );
  const count = (status: number): number => replies.filter((each) => each.status === status).length;
  expect({ served: count(200), refused: count(429) }).toEqual({ served: 100, refused: 500 });
  expect(backup?.requests).toHaveLength(100);
});

it("a conversation stays with its credential, whichever process gets its next turn", async () => {
  const { key } = await served.customer();
  const used = new Map<string, Set<string>>();
  for (let at = 0; at < 9; at++) {
    const messages: object[] = [{ role: "user", content: `Conversation ${at}` }];
    await ask(processes[at % 3] ?? processes[0], { key, model: "chat", messages });
    for (const process of processes) {
      messages.push({ role: "assistant", content: "Hello" }, { role: "user", content: "More" });
      await ask(process, { key, model: "chat", messages });
    }
    const keys = new Set(first?.requests.splice(0).map((request) => request.key));
    used.set(`Conversation ${at}`, keys);
  }
  expect([...used.values()].map(({ size }) => size)).toEqual(Array(9).fill(1));
});

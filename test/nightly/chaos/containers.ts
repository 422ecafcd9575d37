/**
 * Two containers on one data folder: gateways with separate process IDs and shared memory. The
 * second is refused while the first is alive. The first is killed after bookings, and during a
 * call; the second takes over. Nothing that was acknowledged may be lost (R-MON-14), and the hold
 * of the call ends within a minute (R-MON-7).
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beginStream } from "../ha/load.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { startUpstream } from "../../support/upstream/upstream.ts";
import { deadHoldsLimitMs } from "./dead-holds.ts";

/** Start command of a container; its processes end with it. */
const container = ["unshare", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child"];

const bin = join(import.meta.dirname, "../../../bin/uas.js");
const token = "chaos-operator";

/** Maximum time of a start, and of a takeover, on a busy machine. */
const startMs = 120_000;

/** Amount of each top-up. */
const topUpNanos = 1_000_000_000n;

/** Result of a round. */
export interface ContainersResult {
  /** Top-ups that a gateway acknowledged. */
  readonly acknowledged: number;
  /** From the kill to the first booking through the second container. */
  readonly takeoverMs: number;
  /** From the kill until the hold of the dead container's call had ended. */
  readonly deadHoldsMs: number;
  /** Problems in words. Empty if there are none. */
  readonly problems: readonly string[];
}

/** Whether this machine lets us make containers. */
export function hasContainers(): boolean {
  return spawnSync("unshare", [...container.slice(1), "true"]).status === 0;
}

/**
 * Runs a round in a separate folder. @param bookings number of top-ups before and after the kill
 */
export async function runContainers(bookings: number): Promise<ContainersResult> {
  const folder = mkdtempSync(join(tmpdir(), "uas-containers-"));
  const gateways: Gateway[] = [];
  const vendor = await startUpstream();
  // No content: nothing is charged for such a call.
  vendor.always(answer({ cutAfter: 0, ending: "hang" }));
  writeFileSync(join(folder, "uas.yaml"), yamlOf(vendor.baseUrl));
  try {
    const first = await Gateway.start(folder, vendor.secret);
    gateways.push(first);
    const startSecond = async (): Promise<Gateway> => {
      const second = await Gateway.start(folder, vendor.secret);
      gateways.push(second);
      return second;
    };
    return await book(first, startSecond, bookings);
  } finally {
    for (const gateway of gateways) await gateway.kill();
    await vendor.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function yamlOf(baseUrl: string): string {
  return `version: 1
vendors:
  sim: { kind: openai-compatible, base_url: "${baseUrl}", api_key: "\${env:VENDOR_KEY}" }
models:
  m: { type: TEXT, routes: [{ vendor: sim, model: vendor-model }], max_output_tokens: 100, price: { input: "0.25", output: "2.00" } }
`;
}

/** Resolves once the account holds money, or holds none, to whether that came before `endMs`. */
async function untilHeld(
  gateway: Gateway,
  accountId: string,
  { isHeld, endMs }: { readonly isHeld: boolean; readonly endMs: number },
): Promise<boolean> {
  for (; ; await sleep(50)) {
    const { balance } = (await gateway
      .call("uas.billing.v1.BillingService/GetBalance", { accountId })
      .catch(() => ({}))) as { readonly balance?: { readonly held?: { amountNanos?: string } } };
    if (balance !== undefined && ((balance.held?.amountNanos ?? "0") !== "0") === isHeld)
      return true;
    if (performance.now() > endMs) return false;
  }
}

/** Message of a refused gateway. */
const refusal = /is in use by process \d+ on host \S+ since .*DATABASE_URL/;

async function book(
  first: Gateway,
  startSecond: () => Promise<Gateway>,
  bookings: number,
): Promise<ContainersResult> {
  const account = await first.call("uas.account.v1.AccountService/CreateAccount", { name: "c" });
  const { accountId } = account["account"] as { readonly accountId: string };
  let acknowledged = 0;
  const topUp = async (gateway: Gateway): Promise<boolean> => {
    const amount = { amountNanos: String(topUpNanos) };
    const request = { accountId, amount, reference: `r-${acknowledged}` };
    const isBooked = await gateway.call("uas.billing.v1.BillingService/TopUp", request).then(
      () => true,
      () => false,
    );
    if (isBooked) acknowledged++;
    return isBooked;
  };
  for (let count = 0; count < bookings; count++) await topUp(first);
  const problems = acknowledged === bookings ? [] : ["a top-up failed before the kill"];
  const refused = await startSecond().then(() => "a second gateway started", String);
  if (!refusal.test(refused)) problems.push(`the second gateway was not refused: ${refused}`);
  const made = await first.call("uas.key.v1.KeyService/CreateKey", { accountId });
  const call = beginStream(first.publicUrl, String(made["secret"]), "Hi");
  const heldEndMs = performance.now() + startMs;
  if (!(await untilHeld(first, accountId, { isHeld: true, endMs: heldEndMs }))) {
    problems.push("the call before the kill held no money");
  }
  const killedMs = performance.now();
  await first.kill();
  await call;
  const second = await startSecond();
  if (!(await topUp(second))) problems.push("the first top-up after the kill failed");
  const takeoverMs = performance.now() - killedMs;
  for (let count = 1; count < bookings; count++) await topUp(second);
  const endMs = killedMs + deadHoldsLimitMs;
  if (!(await untilHeld(second, accountId, { isHeld: false, endMs }))) {
    problems.push(`the hold of the dead call is open after ${deadHoldsLimitMs} ms`);
  }
  const deadHoldsMs = performance.now() - killedMs;
  const balance = await second.call("uas.billing.v1.BillingService/GetBalance", { accountId });
  const found = JSON.stringify(balance);
  const expected = String(topUpNanos * BigInt(acknowledged));
  if (!found.includes(`"${expected}"`))
    problems.push(`${expected} expected, the balance is ${found}`);
  const audit = await second.call("uas.billing.v1.BillingService/AuditLedger", {});
  const { findings = [] } = audit as { readonly findings?: readonly unknown[] };
  for (const finding of findings) problems.push(JSON.stringify(finding));
  return { acknowledged, takeoverMs, deadHoldsMs, problems };
}

/** Log line with the addresses of a gateway. */
const listening = /"listenUrl":"([^"]+)","internalUrl":"([^"]+)"/;

/** A gateway in a container. */
class Gateway {
  readonly #child: ChildProcess;
  readonly publicUrl: string;
  readonly #internalUrl: string;

  private constructor(child: ChildProcess, publicUrl: string, internalUrl: string) {
    this.#child = child;
    this.publicUrl = publicUrl;
    this.#internalUrl = internalUrl;
  }

  static async start(dataDir: string, vendorKey: string): Promise<Gateway> {
    const [command, ...args] = [...container, process.execPath, bin, "serve"];
    const child = spawn(command, args, {
      cwd: dataDir,
      env: {
        PATH: process.env["PATH"],
        UAS_DATA_DIR: dataDir,
        UAS_LISTEN: "127.0.0.1:0",
        UAS_INTERNAL_LISTEN: "127.0.0.1:0",
        UAS_OPERATOR_TOKEN: token,
        UAS_DRAIN_DELAY: "0s",
        VENDOR_KEY: vendorKey,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let out = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (piece: Buffer) => (out += piece.toString()));
    }
    for (const end = performance.now() + startMs; performance.now() < end; await sleep(20)) {
      const [, url = "", internalUrl = ""] = listening.exec(out) ?? [];
      if (url !== "") return new Gateway(child, url, internalUrl);
      if (child.exitCode !== null) break;
    }
    child.kill("SIGKILL");
    throw new Error(`a gateway did not start: ${out}`);
  }

  /** Calls an RPC as the operator. @throws if it is refused or not answered */
  async call(method: string, request: object): Promise<Record<string, unknown>> {
    const reply = await fetch(`${this.#internalUrl}/${method}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(request),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method}: ${reply.status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  }

  /** Ends the container with all that runs in it, hard. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "close");
  }
}

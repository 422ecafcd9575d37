/**
 * Two containers on one data folder: gateways with process ids and shared memory of their own. One is killed while both
 * book money. Nothing that was acknowledged may be lost (R-MON-14).
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** What a container is here; what it started ends with it. */
const container = ["unshare", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child"];

const bin = join(import.meta.dirname, "../../bin/uas.js");
const token = "chaos-operator";

/** How long a start, and a takeover, may take, in milliseconds: machines can be busy. */
const startMs = 120_000;

/** What each top-up adds, in nano-USD. */
const topUpNanos = 1_000_000_000n;

/** What came of a round. */
export interface ContainersResult {
  /** Top-ups that a gateway acknowledged. */
  readonly acknowledged: number;
  /** From the kill to the first booking through the other container, in milliseconds. */
  readonly takeoverMs: number;
  /** What is wrong, in words. Empty: nothing. */
  readonly problems: readonly string[];
}

/** Whether this machine lets us make containers. */
export function hasContainers(): boolean {
  return spawnSync("unshare", [...container.slice(1), "true"]).status === 0;
}

/** Runs a round in a folder of its own. @param bookings how many top-ups before and after the kill */
export async function runContainers(bookings: number): Promise<ContainersResult> {
  const folder = mkdtempSync(join(tmpdir(), "uas-containers-"));
  const gateways: Gateway[] = [];
  try {
    const first = await Gateway.start(folder);
    gateways.push(first);
    const second = await Gateway.start(folder);
    gateways.push(second);
    return await book(first, second, bookings);
  } finally {
    for (const gateway of gateways) await gateway.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function book(first: Gateway, second: Gateway, bookings: number): Promise<ContainersResult> {
  const account = await second.call("uas.account.v1.AccountService/CreateAccount", { name: "c" });
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
  for (let count = 0; count < bookings; count++) await topUp(count % 2 === 0 ? first : second);
  const problems = acknowledged === bookings ? [] : ["a top-up failed before the kill"];
  const killedMs = performance.now();
  await first.kill();
  while (!(await topUp(second))) {
    if (performance.now() - killedMs > startMs) throw new Error("nobody took the folder over");
    await sleep(100);
  }
  const takeoverMs = performance.now() - killedMs;
  for (let count = 1; count < bookings; count++) await topUp(second);
  const balance = await second.call("uas.billing.v1.BillingService/GetBalance", { accountId });
  const found = JSON.stringify(balance);
  const expected = String(topUpNanos * BigInt(acknowledged));
  if (!found.includes(`"${expected}"`))
    problems.push(`${expected} expected, the balance is ${found}`);
  const audit = await second.call("uas.billing.v1.BillingService/AuditLedger", {});
  const { findings = [] } = audit as { readonly findings?: readonly unknown[] };
  for (const finding of findings) problems.push(JSON.stringify(finding));
  return { acknowledged, takeoverMs, problems };
}

/** A gateway in a container. */
class Gateway {
  readonly #child: ChildProcess;
  readonly #internalUrl: string;

  private constructor(child: ChildProcess, internalUrl: string) {
    this.#child = child;
    this.#internalUrl = internalUrl;
  }

  static async start(dataDir: string): Promise<Gateway> {
    const [command, ...args] = [...container, process.execPath, bin, "serve"];
    const child = spawn(command, args, {
      cwd: dataDir,
      env: {
        PATH: process.env["PATH"],
        UAS_DATA_DIR: dataDir,
        UAS_LISTEN: "127.0.0.1:0",
        UAS_INTERNAL_LISTEN: "127.0.0.1:0",
        UAS_OPERATOR_TOKEN: token,
        UAS_WARM_UP: "off",
        UAS_DRAIN_DELAY: "0s",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let out = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (piece: Buffer) => (out += piece.toString()));
    }
    for (const end = performance.now() + startMs; performance.now() < end; await sleep(20)) {
      const [, url] = /"internalUrl":"([^"]+)"/.exec(out) ?? [];
      if (url !== undefined) return new Gateway(child, url);
      if (child.exitCode !== null) break;
    }
    child.kill("SIGKILL");
    throw new Error(`a gateway did not start: ${out}`);
  }

  /** Calls an RPC as the operator. @throws where it is refused or nobody answers */
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

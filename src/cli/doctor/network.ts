/** Checks of the network: vendors, the public address, and the way out for webhooks. */
import { isLoopback } from "./loopback.ts";
import type { Settings } from "../../config/config.ts";
import type { ProbedVendor } from "../context.ts";
import { probeNote } from "../probe-output.ts";
import { type Finding, findings } from "./finding.ts";

const waitMs = 5_000;

/** One finding for each credential of each vendor. */
export function vendorFindings(probes: readonly ProbedVendor[]): readonly Finding[] {
  const { ok, warning, problem } = findings("vendors");
  return probes.map((probe) => {
    const name = [probe.vendor, probe.credential].filter((each) => each !== undefined).join(" ");
    const status = probe.status === undefined ? "" : ` (${probe.status})`;
    const note = probeNote(probe);
    const text = `${name}: ${probe.verdict}${status}, ${probe.latencyMs} ms${note === "" ? "" : `; ${note}`}`;
    if (probe.verdict === "refused")
      return problem(text, "renew the credential, or pay the vendor");
    if (probe.verdict === "failing") return problem(text, "check base_url, DNS and the firewall");
    if (probe.missingModels.length > 0) return warning(text, "correct the model of the route");
    return probe.verdict === "ok" ? ok(text) : warning(text, "make a test call in the console");
  });
}

/** Checks `UAS_PUBLIC_URL`. @param isRunning whether a gateway runs, which should answer there */
export async function checkPublicUrl(
  { publicUrl, listen }: Settings,
  isRunning: boolean,
): Promise<Finding> {
  const { ok, skipped, warning, problem } = findings("public URL");
  if (publicUrl === undefined) {
    if (isLoopback(listen.host)) return ok("not set: only this machine reaches the gateway");
    return warning("UAS_PUBLIC_URL is not set", "set it to the address that customers use");
  }
  if (!isRunning) return skipped(`${publicUrl}: no gateway runs here`);
  const status = await statusOf(`${publicUrl}/healthz`);
  if (status !== 200) {
    const text = `${publicUrl}/healthz answers ${status ?? "nothing"}`;
    return problem(text, "correct UAS_PUBLIC_URL, or the proxy in front of the gateway");
  }
  const isSafe = publicUrl.startsWith("https:") || isLoopback(new URL(publicUrl).hostname);
  if (isSafe) return ok(`${publicUrl} reaches a gateway`);
  return warning(`${publicUrl} is not encrypted`, "put a proxy with TLS before the gateway");
}

/** Checks whether webhooks can be sent. @param probes a vendor that was reached is enough */
export async function checkEgress(probes: readonly ProbedVendor[]): Promise<Finding> {
  const { ok, warning } = findings("webhook egress");
  if (probes.some(({ status }) => status !== undefined)) return ok("vendors were reached");
  if ((await statusOf("https://example.com/")) !== undefined) return ok("example.com was reached");
  const remedy = "if customers receive webhooks, allow connections to port 443";
  return warning("the internet was not reached", remedy);
}

/** The status of a GET request; undefined without a reply. */
async function statusOf(url: string): Promise<number | undefined> {
  try {
    const reply = await fetch(url, { signal: AbortSignal.timeout(waitMs), redirect: "manual" });
    await reply.body?.cancel();
    return reply.status;
  } catch {
    return undefined;
  }
}

/** Probes all vendors of a configuration, without a database. */
import type { Config } from "../config/config.ts";
import { vendorKinds } from "../provider/index.ts";
import { type ProbeResult, probeVendor } from "../provider/probe.ts";

/** A probed credential, with the configured models that the vendor does not list. */
export interface ProbedVendor extends ProbeResult {
  readonly missingModels: readonly string[];
}

/** Probes every credential of every vendor, all at once. */
export async function probeVendors(config: Config): Promise<readonly ProbedVendor[]> {
  const found = await Promise.all(
    [...config.vendors.values()].map(async (vendor) => {
      const kind = vendorKinds[vendor.kind];
      return kind === undefined ? [] : probeVendor(kind, vendor);
    }),
  );
  return found.flat().map((result) => {
    const routed = routedModels(config, result.vendor);
    return { ...result, missingModels: missingIn(result.models, routed) };
  });
}

/** The vendor's names of the models that routes send to it. */
function routedModels({ models }: Config, vendor: string): readonly string[] {
  const routes = [...models.values()].flatMap(({ routes: all }) => all);
  const names = routes.filter((route) => route.vendor === vendor).map(({ model }) => model);
  return [...new Set(names)];
}

function missingIn(
  listed: readonly string[] | undefined,
  routed: readonly string[],
): readonly string[] {
  if (listed === undefined || listed.length === 0) return [];
  return routed.filter((name) => !listed.some((id) => isNamed(id, name)));
}

/** Vendors list dated names, such as `claude-sonnet-4-5-20250929`, but accept shorter ones too. */
function isNamed(id: string, name: string): boolean {
  const stem = name.replace(/-latest$/, "").replace(/^models\//, "");
  if (id === name || id === stem) return true;
  return id.startsWith(`${stem}-`) && /^-[\d-]+$/.test(id.slice(stem.length));
}

/** `uas check`, which needs only the configuration, and with `--probe` the vendors. */
import type { Command } from "commander";
import type { Config, ModelConfig, PriceConfig, RouteConfig } from "../config/config.ts";
import { type PriceUnit, priceUnits } from "../config/price-units.ts";
import { priceAt } from "../config/price.ts";
import { ConfigError } from "../config/problems.ts";
import { formatUsd } from "../core/money.ts";
import { serviceTiers } from "../core/service-tiers.ts";
import { configOf, warn } from "./backend.ts";
import type { CliContext, CliTools, Output, ProbedVendor } from "./context.ts";
import { isFailed, probeJson, probeTable } from "./probe-output.ts";
import { moments, momentText, upcoming } from "./price-dates.ts";
import { namesUnit, tierLimits, unitPrice } from "./price-units.ts";

/** Adds the command. */
export function addCheckCommand(command: Command, { context, print }: CliTools): void {
  command
    .argument("[file]", "the file (default: UAS_CONFIG, else uas.yaml, else the built-in demo)")
    .option(
      "--probe",
      "also ask each vendor, by a request that is free of charge, if it accepts each credential and has the models",
    )
    .action(async (file: string | undefined, { probe = false }: { probe?: boolean }) => {
      print(await check(context, file, probe));
    });
}

async function check(
  context: CliContext,
  path: string | undefined,
  isProbed: boolean,
): Promise<Output> {
  try {
    const config = await configOf(context, { path, unresolved: "refuse" });
    const output = accepted(context, config);
    return isProbed ? withProbes(output, await probeAll(context, config)) : output;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const errors = error.problems;
    for (const problem of errors) context.err(`${problem}\n`);
    return { json: { ok: false, errors }, text: "", exitCode: 1 };
  }
}

async function probeAll({ app }: CliContext, config: Config): Promise<readonly ProbedVendor[]> {
  return (await app()).probeVendors(config);
}

function withProbes({ json, text }: AcceptedOutput, probes: readonly ProbedVendor[]): Output {
  const failed = probes.filter(isFailed).length;
  const last = failed === 0 ? text : `failed: ${failed} of ${probes.length} probes`;
  return {
    json: { ...json, ok: failed === 0, probes: probes.map(probeJson) },
    text: probes.length === 0 ? text : `${probeTable(probes)}\n\n${last}`,
    exitCode: failed === 0 ? 0 : 1,
  };
}

type AcceptedOutput = Output & { readonly json: object };

function accepted(context: CliContext, config: Config): AcceptedOutput {
  const { source } = config;
  const warnings = [...config.warnings, ...lossWarnings(config, Date.now())];
  for (const warning of warnings) warn(context, warning);
  const vendors = config.vendors.size;
  const models = config.models.size;
  const text = `ok: ${vendors} ${vendors === 1 ? "vendor" : "vendors"}, ${models} ${models === 1 ? "model" : "models"}`;
  return { json: { ok: true, source, vendors, models, warnings }, text };
}

/**
 * One warning for each unit whose price is below the cost of a route, now or at a later moment that
 * the configuration names: `uas.yaml:7 models.small: …`. Routes without a cost are not compared.
 *
 * @param nowMs milliseconds since 1970: prices that have ended by then do not count
 */
function lossWarnings(config: Config, nowMs: number): readonly string[] {
  return [...config.models.values()].flatMap((model) => {
    const path = `models.${model.key}`;
    const line = config.lines?.get(path);
    const place = line === undefined ? config.source : `${config.source}:${line}`;
    const losses = model.routes.flatMap((route) => routeLosses(model, route, nowMs));
    return [...new Set(losses)].map((loss) => `${place} ${path}: ${loss}`);
  });
}

function routeLosses(model: ModelConfig, route: RouteConfig, nowMs: number): readonly string[] {
  if (route.costs === undefined) return [];
  const prices = upcoming(model.prices, nowMs);
  const costs = upcoming(route.costs, nowMs);
  const head = `route ${route.vendor} ${route.model}`;
  return moments([prices, costs]).flatMap((fromMs) => {
    const price = priceAt(prices, fromMs);
    const cost = priceAt(costs, fromMs);
    const since = Number.isFinite(fromMs) ? `from ${momentText(fromMs)} ` : "";
    const tiers = serviceTiers.flatMap((tier) => {
      const own = [price.serviceTiers?.[tier], cost.serviceTiers?.[tier]] as const;
      return own[0] === undefined || own[1] === undefined ? [] : [[tier, own[0], own[1]] as const];
    });
    return [["", price, cost] as const, ...tiers].flatMap(([tier, ...compared]) =>
      priceUnits.flatMap((unit) => {
        const loss = firstLoss(unit, ...compared);
        return loss === undefined ? [] : [since + lossText(unit, head, { ...loss, tier })];
      }),
    );
  });
}

/** A unit whose price is below its cost, in calls that read more tokens than `above`. */
interface Loss {
  readonly above: number;
  readonly priceNanos: bigint;
  readonly costNanos: bigint;
  /** Whether the cost names another unit, which is the default of this one. */
  readonly isDefault: boolean;
}

/**
 * The loss of the shortest calls that have one. Defaults are compared if the price or the cost
 * departs from them.
 */
function firstLoss(unit: PriceUnit, price: PriceConfig, cost: PriceConfig): Loss | undefined {
  if (!namesUnit(price, unit.key) && !namesUnit(cost, unit.key)) return undefined;
  for (const above of tierLimits([price, cost])) {
    const priceNanos = unitPrice(price, unit, above);
    const costNanos = unitPrice(cost, unit, above);
    // A price in other units than the cost, such as `image` for a cost in tokens, cannot be
    // compared.
    if (priceNanos === undefined || costNanos === undefined || priceNanos >= costNanos) continue;
    return { above, priceNanos, costNanos, isDefault: !namesUnit(cost, unit.key) };
  }
  return undefined;
}

function lossText(
  { name, whole = "input" }: PriceUnit,
  head: string,
  { above, priceNanos, costNanos, isDefault, tier }: Loss & { readonly tier: string },
): string {
  const length = above === 0 ? "" : ` above ${above} tokens`;
  const unit = name + length + (tier === "" ? "" : ` at the tier ${tier}`);
  const source = isDefault ? `, the cost of ${whole}, as no cost of ${name} is given` : "";
  return `the price of ${unit}, ${formatUsd(priceNanos)}, is below the cost of ${head}, ${formatUsd(costNanos)}${source}: raise the price or correct the cost`;
}

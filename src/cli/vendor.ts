/** `uas vendor …`. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { OperatorService } from "../../gen/uas/operator/v1/operator_service_pb.ts";
import { BreakerStateSchema, RouteService } from "../../gen/uas/operator/v1/route_service_pb.ts";
import { withBackend } from "./backend.ts";
import { modelTypeWord } from "../config/kinds.ts";
import { presets } from "../config/presets.ts";
import type { CliTools, Output } from "./context.ts";
import { cell, table } from "./output.ts";
import { enumWord, orNull, timeText } from "./values.ts";

/** Adds the commands. */
export function addVendorCommands(vendor: Command, { context, print }: CliTools): void {
  vendor
    .command("list")
    .description("list routes and credentials with their circuit breakers and health")
    .option("--vendor <name>", "only routes and credentials of this vendor", "")
    .action(async (options: { vendor: string }) => {
      print(await withBackend(context, ({ transport }) => routeList(transport, options.vendor)));
    });
  vendor
    .command("unlimited")
    .description("list vendors' models that ignored the output limit of a request")
    .action(async () => {
      print(await withBackend(context, ({ transport }) => unlimitedList(transport)));
    });
  vendor
    .command("clear-unlimited")
    .description(
      "clear the mark of a model, so that its calls hold for their own output limit again",
    )
    .argument("<vendor>", "the vendor's name in the configuration")
    .argument("<model>", "the vendor's name of the model")
    .action(async (name: string, model: string) => {
      print(
        await withBackend(context, async ({ transport }) => {
          const client = createClient(OperatorService, transport);
          await client.clearUnlimitedModel({ vendor: name, model });
          const text = `cleared: calls of ${model} of vendor ${name} hold for their own output limit again`;
          return { json: { vendor: name, model, cleared: true }, text };
        }),
      );
    });
  vendor
    .command("presets")
    .description("list the vendors that `preset:` knows; needs no database")
    .action(() => print(presetList()));
}

async function routeList(transport: Transport, vendor: string): Promise<Output> {
  const { routes } = await createClient(RouteService, transport).getRouteHealth({ vendor });
  const json = routes.map((route) => ({
    vendor: route.vendor,
    model: orNull(route.model),
    credential: orNull(route.credential),
    breaker: enumWord(BreakerStateSchema, route.breaker),
    breakerFailure: orNull(route.breakerFailure),
    probeTime: timeText(route.probeTime),
    attempts: route.attemptCount,
    failed: route.failedCount,
    firstContentP50Ms: route.medianDuration ? durationMs(route.medianDuration) : null,
    firstContentP95Ms: route.slowDuration ? durationMs(route.slowDuration) : null,
    failure: orNull(route.failure),
    failureTime: timeText(route.failureTime),
  }));
  const rows = json.map((route) => [
    route.vendor,
    cell(route.model),
    cell(route.credential),
    route.breakerFailure === null
      ? cell(route.breaker)
      : `${route.breaker} (${route.breakerFailure})`,
    String(route.attempts),
    String(route.failed),
    cell(route.firstContentP50Ms),
    cell(route.firstContentP95Ms),
    cell(route.failure),
    cell(route.failureTime),
  ]);
  const columns = ["VENDOR", "MODEL", "CREDENTIAL", "BREAKER", "ATTEMPTS", "FAILED"];
  return { json, text: table([...columns, "P50 MS", "P95 MS", "LAST FAILURE", "AT"], rows) };
}

async function unlimitedList(transport: Transport): Promise<Output> {
  const client = createClient(OperatorService, transport);
  const json: UnlimitedRow[] = [];
  let pageToken = "";
  do {
    const page = await client.listVendors({ pageSize: 1_000, pageToken });
    for (const { vendor, unlimitedModels } of page.vendors) {
      for (const { model, callId, limitTokens, outputTokens, createTime } of unlimitedModels) {
        const tokens = {
          limitTokens: Number(limitTokens),
          outputTokens: Number(outputTokens),
        };
        json.push({ vendor, model, callId, ...tokens, createTime: timeText(createTime) });
      }
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  const rows = json.map((row) => [
    row.vendor,
    row.model,
    String(row.limitTokens),
    String(row.outputTokens),
    row.callId,
    cell(row.createTime),
  ]);
  return { json, text: table(["VENDOR", "MODEL", "LIMIT", "OUTPUT", "CALL", "SINCE"], rows) };
}

interface UnlimitedRow {
  readonly vendor: string;
  readonly model: string;
  readonly callId: string;
  readonly limitTokens: number;
  readonly outputTokens: number;
  readonly createTime: string | null;
}

function presetList(): Output {
  const json = [...presets].map(([preset, each]) => ({
    preset,
    kind: each.kind,
    baseUrl: each.baseUrl || null,
    needsApiKey: each.needsApiKey,
    limitParameter: each.limitParameter ?? null,
    quirks: each.quirks ?? {},
    modelTypes: each.modelTypes.map(modelTypeWord),
    source: each.source,
  }));
  const rows = json.map(({ preset, baseUrl, needsApiKey, modelTypes, source }) => [
    preset,
    baseUrl ?? "(yours)",
    needsApiKey ? "required" : "optional",
    cell(modelTypes.join(",")),
    source,
  ]);
  return { json, text: table(["PRESET", "BASE URL", "API KEY", "MODELS", "SOURCE"], rows) };
}

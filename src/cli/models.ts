/** `uas models …`: the models that are in force, those of the file, and those of price lists. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { InferenceService } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { CancelBilling, type Model } from "../../gen/uas/inference/v1/model_pb.ts";
import { OperatorService } from "../../gen/uas/operator/v1/operator_service_pb.ts";
import type { Config, ModelConfig } from "../config/config.ts";
import { cancelBillingWord, modelTypeWord } from "../config/kinds.ts";
import { priceAt } from "../config/price.ts";
import { priceMessage } from "../config/price-message.ts";
import { taskRunMs } from "../core/limits.ts";
import { configOf, withGateway } from "./backend.ts";
import type { CliContext, CliTools, Output } from "./context.ts";

import { addModelsImport } from "./models-import.ts";
import { everyPage, table } from "./output.ts";
import { type PriceJson, priceJson, priceText } from "./price-json.ts";
import { comparedFile } from "./uas-yaml.ts";

/** Adds the commands. */
export function addModelsCommands(models: Command, { context, print }: CliTools): void {
  models
    .command("list")
    .description("list the models that are in force and those of the file, with their prices")
    .action(async () => {
      const rows = await withGateway(context, async (transport) => {
        const inForce = await readInForce(transport);
        const file = await comparedFile(context, transport);
        return compared(inForce, file && modelsOf(file));
      });
      print(modelList(rows ?? (await readFile(context))));
    });
  addModelsImport(models.command("import"), { context, print });
}

/** A model, in the words of the command line. */
interface ModelJson {
  readonly modelKey: string;
  readonly name: string;
  readonly type: string;
  readonly price: PriceJson;
  readonly maxOutputTokens: number;
  readonly deadlineMs: number;
  readonly cancelBilling: string;
  readonly routes: readonly { readonly vendor: string; readonly model: string }[];
}

/** Whether a model of the file is in force. */
type State =
  /** In force, and in the file if there is one. */
  | "in force"
  /** In force, but the file has another or none. */
  | "not in the file"
  /** In the file, but not in force. */
  | "not in force"
  /** In the file; no gateway runs here. */
  | "in the file";

/** The models of the running gateway. */
async function readInForce(transport: Transport): Promise<readonly ModelJson[]> {
  const catalogue = createClient(InferenceService, transport);
  const models = await everyPage(Infinity, async (page) => {
    const { models: items, nextPageToken } = await catalogue.listModels(page);
    return { items, nextPageToken };
  });
  const operator = createClient(OperatorService, transport);
  const configured = await everyPage(Infinity, async (page) => {
    const { models: items, nextPageToken } = await operator.listConfiguredModels(page);
    return { items, nextPageToken };
  });
  const routes = new Map(configured.map((model) => [model.modelKey, model.routes]));
  return models.map((model) => ofMessage(model, routes.get(model.modelKey) ?? []));
}

function ofMessage(model: Model, routes: ModelJson["routes"]): ModelJson {
  const { modelKey, name, type, maxOutputTokens, deadline } = model;
  return {
    modelKey,
    name,
    type: modelTypeWord(type),
    price: priceJson(model.price),
    maxOutputTokens,
    deadlineMs: deadline === undefined ? taskRunMs : durationMs(deadline),
    cancelBilling: cancelBillingWord(model.cancelBilling),
    routes: routes.map(({ vendor, model: routed }) => ({ vendor, model: routed })),
  };
}

/** The models of a file. */
function modelsOf({ models }: Config): readonly ModelJson[] {
  return [...models.values()].map(ofConfig);
}

function ofConfig(model: ModelConfig): ModelJson {
  return {
    modelKey: model.key,
    name: model.name,
    type: modelTypeWord(model.type),
    price: priceJson(priceMessage(priceAt(model.prices, Date.now()))),
    maxOutputTokens: model.maxOutputTokens,
    deadlineMs: model.deadlineMs ?? taskRunMs,
    cancelBilling: cancelBillingWord(model.cancelBilling ?? CancelBilling.NONE),
    routes: model.routes.map(({ vendor, model: name }) => ({ vendor, model: name })),
  };
}

function modelList(rows: readonly Row[]): Output {
  const json = rows.map(({ model: { price, ...model }, state }) => {
    return { ...model, price: flatPrice(price), state: state.replaceAll(" ", "_") };
  });
  const cells = rows.map(({ model, state }) => [
    model.modelKey,
    state,
    model.type,
    priceText(model.price),
    model.routes.map(({ vendor }) => vendor).join(","),
  ]);
  const head = ["MODEL", "STATE", "TYPE", "USD PER 1M TOKENS OR UNIT", "VENDORS"];
  return { json, text: table(head, cells) };
}

/** The models of the file, without a gateway. */
async function readFile(context: CliContext): Promise<readonly Row[]> {
  const file = await configOf(context, { unresolved: "placeholder" });
  return stated(modelsOf(file), "in the file");
}

/** A model with its state. */
interface Row {
  readonly model: ModelJson;
  readonly state: State;
}

function stated(models: readonly ModelJson[], state: State): readonly Row[] {
  return models.map((model) => ({ model, state }));
}

/**
 * The models in force, each before what the file has instead.
 *
 * @param file undefined if there is none that could be compared
 */
function compared(
  inForce: readonly ModelJson[],
  file: readonly ModelJson[] | undefined,
): readonly Row[] {
  if (file === undefined) return stated(inForce, "in force");
  const written = new Map(file.map((model) => [model.modelKey, model]));
  const pairs = inForce.flatMap((model) => {
    const other = written.get(model.modelKey);
    written.delete(model.modelKey);
    if (JSON.stringify(model) === JSON.stringify(other)) return stated([model], "in force");
    const instead = other === undefined ? [] : [other];
    return [...stated([model], "not in the file"), ...stated(instead, "not in force")];
  });
  return [...pairs, ...stated([...written.values()], "not in force")];
}

/** A price with its units beside its tiers, images and service tiers. */
function flatPrice({ units, tiers, images = [], serviceTiers = {} }: PriceJson): object {
  const services = Object.entries(serviceTiers).map(([tier, own]) => [tier, flatPrice(own)]);
  return {
    ...units,
    ...(tiers.length > 0 && { tiers: tiers.map((tier) => ({ above: tier.above, ...tier.units })) }),
    ...(images.length > 0 && { images: images.map(flatImage) }),
    ...(services.length > 0 && { serviceTiers: Object.fromEntries(services) }),
  };
}

function flatImage({ size, quality, price }: NonNullable<PriceJson["images"]>[number]): object {
  return { ...(size !== "" && { size }), ...(quality !== "" && { quality }), price };
}

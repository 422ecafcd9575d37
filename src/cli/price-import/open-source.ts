/** Opens the price list that `--from` names, and reads its format: genai-prices or models.dev. */
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { failureMessage } from "../../core/error-words.ts";
import { CliError } from "../failure.ts";
import type { PriceSource, SourceFormat } from "./source.ts";
import {
  bundledSource,
  genaiPricesFile,
  modelsDevFile,
  objectOf,
  parseExactJson,
  type JsonObject,
  listOf,
} from "./genai-prices.ts";

/** The largest file: twenty times what the lists have. */
const fileBytesMax = 100 * 1024 * 1024;

/** A parsed `--from`: a format, a file, or both. */
export interface SourceName {
  readonly format: SourceFormat | undefined;
  readonly path: string | undefined;
}

/**
 * Opens a price list.
 *
 * @param cwd the folder that relative paths count from
 * @throws CliError if the file cannot be read, or is no price list
 */
export function openSource({ format, path }: SourceName, cwd: string): PriceSource {
  return path === undefined ? bundledSource() : fileSource(path, { format, cwd });
}

function fileSource(
  path: string,
  { format, cwd }: { readonly format: SourceFormat | undefined; readonly cwd: string },
): PriceSource {
  const { bytes, changedAt } = readBytes(resolve(cwd, path), path);
  const list = readList(bytes, path);
  const found = genaiProviders(list) === undefined ? "models.dev" : "genai-prices";
  if (format !== undefined && format !== found) {
    throw new CliError(`${path} is a list of ${found}, not of ${format}: write --from ${found}:…`);
  }
  const digest = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
  const title = `${found} (${path} of ${changedAt}, SHA-256 ${digest})`;
  const providers = genaiProviders(list);
  if (providers !== undefined) return genaiPricesFile(title, providers);
  return modelsDevFile(title, objectOf(list) ?? {});
}

function readBytes(file: string, path: string): { bytes: Buffer; changedAt: string } {
  try {
    const facts = statSync(file);
    if (facts.size > fileBytesMax) throw new Error("it is too large for a price list");
    return { bytes: readFileSync(file), changedAt: facts.mtime.toISOString().slice(0, 10) };
  } catch (error) {
    throw new CliError(`cannot read ${path}: ${failureMessage(error)}`, { cause: error });
  }
}

function readList(bytes: Buffer, path: string): unknown {
  const expected = "expected api.json of models.dev or data.json of genai-prices";
  let list: unknown;
  try {
    list = parseExactJson(bytes.toString("utf8"));
  } catch (error) {
    throw new CliError(`${path} is not JSON: ${expected}`, { cause: error });
  }
  if (genaiProviders(list) !== undefined || isModelsDev(list)) return list;
  throw new CliError(`${path} is not a known price list: ${expected}`);
}

/**
 * The providers of a list of genai-prices: an array of objects, each with an id and an array of
 * models.
 */
function genaiProviders(list: unknown): readonly JsonObject[] | undefined {
  const providers = listOf(list).map((each) => objectOf(each) ?? {});
  const isList = providers.every(
    ({ id, models }) => typeof id === "string" && Array.isArray(models),
  );
  return providers.length > 0 && isList ? providers : undefined;
}

/** A list of models.dev is an object of providers by their ids, each with an object of models. */
function isModelsDev(list: unknown): boolean {
  const providers = Object.values(objectOf(list) ?? {});
  const isProvider = (each: unknown): boolean => objectOf(objectOf(each)?.["models"]) !== undefined;
  return providers.length > 0 && providers.every(isProvider);
}

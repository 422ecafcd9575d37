/**
 * Reads the configuration that should be in force: the newest revision, else the file (R-OPS-1).
 */
import { dirname, resolve } from "node:path";
import type { Config, Settings } from "../config/config.ts";
import {
  hashOf,
  loadConfig,
  loadWithCommands,
  readSource,
  type StoredDocument,
} from "../config/load.ts";
import { secretFiles } from "../config/references.ts";
import { ConfigError } from "../config/problems.ts";
import type { Queryable } from "../db/pool/queryable.ts";
import { etagOf, newestRevision } from "../operator/configuration/revisions.ts";
import { readSecrets } from "../operator/configuration/secrets.ts";
import { servedKinds } from "../provider/index.ts";

/** Secrets of the database by name. */
export type Secrets = ReadonlyMap<string, string>;

/** Reads the configuration of the file. @throws ConfigError with all problems */
export type ReadConfig = (secrets?: Secrets) => Config | Promise<Config>;

/** The configuration that should be in force. */
export interface Loaded {
  readonly config: Config;
  /** Identifies the state of the source. */
  readonly etag: string;
}

/** Reads the configuration. */
export interface ConfigLoader {
  /** Reads what should be in force. @throws ConfigError with all problems */
  load(this: void): Promise<Loaded>;
  /** Reads a document with the secrets of this installation. @throws ConfigError */
  parse(this: void, document: string, source: string): Promise<Config>;
  /** Whether the file has another content than a configuration. */
  isFileDifferent(hash: string): boolean;
  /** The files with secrets that a document names. */
  secretFiles(document: string): readonly string[];
}

/** Options of {@link createConfigLoader}. */
interface LoaderOptions {
  readonly pool: Queryable;
  /** Called only if a secret is stored. */
  readonly masterKey: () => Uint8Array;
  readonly readConfig: ReadConfig;
  /** As of {@link loadConfig}. Default `refuse`. */
  readonly unresolved?: "refuse" | "placeholder" | undefined;
}

/** Reads the file that the environment of this process names. */
export function readConfigFile(secrets?: Secrets): Promise<Config> {
  return loadWithCommands({ env: process.env, cwd: process.cwd(), kinds: servedKinds, secrets });
}

/** The configuration file, which a process compares with what is in force. */
export interface WatchedFile {
  readonly path: string;
  /** The action when its content changes. */
  readonly onEdit: "load" | "log" | "nothing";
}

/**
 * The configuration file of a process, to watch.
 *
 * @param isFirst whether this is the first of several workers: it logs an edit for all of them
 */
export function watchedFile(
  { configPath, watchesConfig }: Pick<Settings, "configPath" | "watchesConfig">,
  isFirst: boolean,
): WatchedFile {
  const path = resolve(configPath ?? "uas.yaml");
  return { path, onEdit: watchesConfig ? "load" : isFirst ? "log" : "nothing" };
}

/**
 * Checks that accounts have no price list that a configuration lacks: they would be charged the
 * usual prices without a word.
 *
 * @throws ConfigError
 */
async function requirePriceLists(
  pool: Queryable,
  { source, priceLists = new Set() }: Config,
): Promise<void> {
  const { rows } = await pool.query<{ name: string; accounts: string }>(
    `select price_list as name, count(*) as accounts from account
       where price_list <> '' and price_list <> all($1) group by price_list order by price_list`,
    [[...priceLists]],
  );
  const problems = rows.map(
    ({ name, accounts }) =>
      `${source}:1:1 price_lists: ${accounts} accounts have the price list ${name}: keep it, or give them another one by \`uas account price-list\``,
  );
  if (problems.length > 0) throw new ConfigError(problems);
}

/** Creates the loader of a process. */
export function createConfigLoader(options: LoaderOptions): ConfigLoader {
  const { pool, masterKey, readConfig } = options;
  const surroundings = { env: process.env, cwd: process.cwd() };
  const checked = async (config: Config): Promise<Config> => {
    await requirePriceLists(pool, config);
    return config;
  };
  const readStored = async (
    document: StoredDocument,
    unresolved?: LoaderOptions["unresolved"],
  ): Promise<Config> => {
    const secrets = await readSecrets(pool, masterKey);
    const stored = { ...document, isStored: true };
    const kinds = servedKinds;
    return checked(loadConfig({ ...surroundings, document: stored, kinds, secrets, unresolved }));
  };
  return {
    async load() {
      const newest = await newestRevision(pool);
      const etag = etagOf(newest);
      if (newest === undefined || newest.document === null) {
        const secrets = await readSecrets(pool, masterKey);
        return { config: await checked(await readConfig(secrets)), etag };
      }
      const { number: revision, document: content } = newest;
      const document = { source: `revision ${revision}`, content, revision };
      return { config: await readStored(document, options.unresolved), etag };
    },
    parse: (content, source) => readStored({ source, content }),
    secretFiles: (document) => {
      const folder = dirname(resolve(process.env["UAS_CONFIG"] ?? "uas.yaml"));
      return secretFiles(document, { env: process.env, folder });
    },
    isFileDifferent(hash) {
      try {
        return hashOf(readSource(surroundings).content) !== hash;
      } catch {
        return true;
      }
    },
  };
}

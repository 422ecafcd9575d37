/**
 * Reads the configuration that should be in force: the newest revision, else the file (R-OPS-1).
 */
import { dirname, resolve } from "node:path";
import type { Config, Settings } from "../config/config.ts";
import { hashOf, loadConfig, loadWithCommands, readSource } from "../config/load.ts";
import { secretFiles } from "../config/references.ts";
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

/** Creates the loader of a process. */
export function createConfigLoader(options: LoaderOptions): ConfigLoader {
  const { pool, masterKey, readConfig, unresolved } = options;
  const surroundings = { env: process.env, cwd: process.cwd() };
  return {
    async load() {
      const newest = await newestRevision(pool);
      const secrets = await readSecrets(pool, masterKey);
      const etag = etagOf(newest);
      if (newest === undefined || newest.document === null) {
        return { config: await readConfig(secrets), etag };
      }
      const { number, document: content } = newest;
      const document = {
        source: `revision ${number}`,
        content,
        revision: number,
        isStored: true,
      };
      const kinds = servedKinds;
      return {
        config: loadConfig({ ...surroundings, document, kinds, secrets, unresolved }),
        etag,
      };
    },
    async parse(content, source) {
      const secrets = await readSecrets(pool, masterKey);
      return loadConfig({
        ...surroundings,
        document: { source, content, isStored: true },
        kinds: servedKinds,
        secrets,
      });
    },
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

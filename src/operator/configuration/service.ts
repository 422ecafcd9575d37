/** The RPCs of ConfigService: the configuration in force, its revisions and its secrets. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import type { Pool } from "pg";
import {
  type Config as ConfigMessage,
  ConfigRevisionSchema,
  ConfigSchema,
  ConfigSecretSchema,
} from "../../../gen/uas/config/v1/config_pb.ts";
import type {
  ConfigService,
  PlanConfigRequest,
} from "../../../gen/uas/config/v1/config_service_pb.ts";
import type { Config } from "../../config/config.ts";
import { hashOf } from "../../config/load.ts";
import { lossWarnings } from "../../config/loss-warnings.ts";
import { ConfigError } from "../../config/problems.ts";
import { callerKey } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { cutPage, readPage } from "../../core/pagination.ts";
import { invalid } from "../../core/validation.ts";
import { transact } from "../../db/pool/transaction.ts";
import { actorOf, recordActionOn } from "../../observe/operator-log.ts";
import { differencesOf } from "./differences.ts";
import { type Period, planConfig } from "./plan.ts";
import {
  addRevision,
  configChannel,
  listProcessStates,
  listRevisions,
  newestRevision,
  requireRevision,
  type RevisionFacts,
} from "./revisions.ts";
import { listSecrets, type StoredSecret, sealSecret } from "./secrets.ts";

/** The outcome of a reload. */
export interface Reloaded {
  /** Whether anything differs from the configuration before. */
  readonly isChanged: boolean;
  /** The settings that differ from the start and have no effect before a restart, as paths. */
  readonly needsRestart: readonly string[];
}

/** The configuration in force in a process. */
export interface ConfigStatus {
  readonly config: Config;
  /** Identifies the state of its source. */
  readonly etag: string;
  /** The settings that differ from the start and have no effect before a restart, as paths. */
  readonly needsRestart: readonly string[];
  /** Milliseconds since 1970. */
  readonly loadMs: number;
  /** Why the last attempt to load another one failed; undefined if it did not. */
  readonly problem: string | undefined;
  /** Whether the file has another content. */
  readonly isFileDifferent: boolean;
}

/** Options of {@link createConfigService}. */
export interface ConfigServiceOptions {
  readonly pool: Pool;
  /** The connections of plans, which take long. */
  readonly jobPool: Pool;
  /** The 32-byte master key; called on first use. */
  readonly masterKey: () => Uint8Array;
  /** Reads the state of this process. */
  readonly status: () => ConfigStatus;
  /** Reads a document. @throws ConfigError with all problems, which begin with the source */
  readonly parse: (document: string, source: string) => Promise<Config>;
  /** Lists what would wait for a restart, as paths. */
  readonly needsRestart: (next: Config) => readonly string[];
  /** Loads what should be in force, in this process. @throws ConfigError */
  readonly reload: () => Promise<Reloaded>;
  /** Makes the other processes of this gateway load it. */
  readonly reloadOthers: () => void;
}

type Rpcs = ServiceImpl<typeof ConfigService>;

/** Creates the implementation of `uas.config.v1.ConfigService`. */
export function createConfigService(options: ConfigServiceOptions): Rpcs {
  return { ...readRpcs(options), ...changeRpcs(options), ...secretRpcs(options) };
}

function readRpcs(
  options: ConfigServiceOptions,
): Pick<Rpcs, "getConfig" | "checkConfig" | "planConfig" | "listRevisions" | "getRevision"> {
  const { pool, jobPool, status, parse, needsRestart } = options;
  return {
    async getConfig() {
      const processes = await listProcessStates(pool);
      return {
        config: configMessage(status()),
        processes: processes.map((each) => ({
          processId: each.process_id,
          name: each.name,
          source: each.source,
          hash: each.hash,
          loadTime: timestampFromDate(each.load_time),
          needsRestart: [...each.needs_restart],
          problem: each.problem ?? "",
        })),
      };
    },

    async checkConfig({ document }) {
      try {
        const next = await parse(document, draft);
        return {
          warnings: withoutSource(warningsOf(next)),
          differences: differencesOf(status().config.document, document),
          needsRestart: [...needsRestart(next)],
        };
      } catch (error) {
        if (error instanceof ConfigError) return { problems: withoutSource(error.problems) };
        throw error;
      }
    },

    async planConfig(request) {
      const after = await requireValid(options, request.document);
      const { config: before } = status();
      return planConfig(jobPool, { before, after, period: periodOf(request, Date.now()) });
    },

    async listRevisions(request) {
      const page = readPage(request, { isKey: (text) => /^[1-9][0-9]{0,17}$/.test(text) });
      const [rows, newest] = await Promise.all([
        listRevisions(pool, { before: page.after, limit: page.limit + 1 }),
        newestRevision(pool),
      ]);
      const { items, nextPageToken } = cutPage(page, rows, ({ number }) => number);
      const revisions = items.map((row) => revisionMessage(row, newest?.number));
      return { revisions, nextPageToken };
    },

    async getRevision({ revision: number }) {
      const [found, newest] = await Promise.all([
        requireRevision(pool, number),
        newestRevision(pool),
      ]);
      return {
        revision: revisionMessage(found, newest?.number),
        document: found.document ?? "",
      };
    },
  };
}

/** The period of calls that is planned for by default. */
const planMs = 30 * 24 * 3_600_000;

/** @throws GatewayError INVALID_REQUEST if the period ends before it begins */
function periodOf({ fromTime, toTime, priceTime }: PlanConfigRequest, nowMs: number): Period {
  const toMs = toTime === undefined ? nowMs : timestampMs(toTime);
  const fromMs = fromTime === undefined ? toMs - planMs : timestampMs(fromTime);
  if (fromMs >= toMs) throw invalid("from_time", "the period must begin before it ends");
  const priceMs = priceTime === undefined ? Number.POSITIVE_INFINITY : timestampMs(priceTime);
  return { fromMs, toMs, priceMs };
}

/** A change to the configuration. */
interface Change {
  readonly action: "config.apply" | "config.rollback";
  /** Null: back to the file. */
  readonly document: string | null;
  readonly etag: string;
  readonly note: string;
  readonly values: ContextValues;
}

function changeRpcs(
  options: ConfigServiceOptions,
): Pick<Rpcs, "applyConfig" | "rollBackConfig" | "reloadConfig"> {
  const { pool, status, reload, reloadOthers } = options;
  return {
    async applyConfig({ document, etag, note }, { values }) {
      await requireValid(options, document);
      return change(options, { action: "config.apply", document, etag, note, values });
    },

    async rollBackConfig({ revision: number, etag, note: given }, { values }) {
      const { document } = number === 0n ? { document: null } : await requireRevision(pool, number);
      if (document !== null) await requireValid(options, document);
      const note = given || (document === null ? "back to the file" : `back to revision ${number}`);
      return change(options, { action: "config.rollback", document, etag, note, values });
    },

    async reloadConfig() {
      const { isChanged } = await reload().catch((error: unknown) => {
        throw error instanceof ConfigError ? refusal(error.problems) : error;
      });
      reloadOthers();
      return { config: configMessage(status()), changed: isChanged };
    },
  };
}

/** Reads a document. @throws GatewayError INVALID_REQUEST with all its problems */
async function requireValid({ parse }: ConfigServiceOptions, document: string): Promise<Config> {
  try {
    return await parse(document, draft);
  } catch (error) {
    if (error instanceof ConfigError) throw refusal(withoutSource(error.problems));
    throw error;
  }
}

async function change(
  { pool, status, reload }: ConfigServiceOptions,
  { action, document, etag, note, values }: Change,
) {
  const { config: before } = status();
  const hash = document === null ? null : hashOf(document);
  const revision = await transact(pool, async (client) => {
    const added = await addRevision(client, { document, hash, note, author: author(values) }, etag);
    await recordActionOn(client, values, {
      action,
      subject: added.number,
      before: { source: before.source, hash: before.hash },
      after: { revision: added.number, hash: hash ?? "file" },
      reason: note,
    });
    return added;
  });
  // The other processes load it as they are notified. If this one cannot, its status says why.
  await reload().catch(() => {});
  const { config: after, needsRestart } = status();
  return {
    revision: revisionMessage(revision, revision.number),
    differences: differencesOf(before.document, after.document),
    needsRestart: [...needsRestart],
  };
}

const secretName = /^[A-Za-z0-9._-]{1,64}$/;

const secretValue = /^[\x21-\x7e]+$/;

function secretRpcs({
  pool,
  masterKey,
  status,
  reload,
}: ConfigServiceOptions): Pick<Rpcs, "setSecret" | "listSecrets" | "deleteSecret"> {
  return {
    async setSecret({ name, value }, { values }) {
      if (!secretName.test(name)) throw invalid("name", "use 1 to 64 letters, digits and . _ -");
      if (!secretValue.test(value)) {
        throw invalid("value", "a secret has printable ASCII characters without spaces");
      }
      const sealed = sealSecret(masterKey(), name, value);
      const secret = await transact(pool, async (client) => {
        const { rows } = await client.query<StoredSecret>(setSecretSql, [
          name,
          sealed,
          author(values),
        ]);
        const action = { action: "config.secret.set", subject: name };
        await recordActionOn(client, values, action);
        await client.query("select pg_notify($1, '')", [configChannel]);
        return rows[0];
      });
      await reload().catch(() => {});
      return { secret: secret && secretMessage(secret, status().config.document) };
    },

    async listSecrets(request) {
      const { document } = status().config;
      const page = readPage(request);
      const rows = await listSecrets(pool, { after: page.after, limit: page.limit + 1 });
      const { items, nextPageToken } = cutPage(page, rows, ({ name }) => name);
      return { secrets: items.map((each) => secretMessage(each, document)), nextPageToken };
    },

    async deleteSecret({ name }, { values }) {
      if (isUsed(name, status().config.document)) {
        throw invalid(
          "name",
          `the configuration in force refers to \${secret:${name}}: remove it there first`,
        );
      }
      await transact(pool, async (client) => {
        const { rowCount } = await client.query("delete from config_secret where name = $1", [
          name,
        ]);
        if (rowCount === 0) return;
        await recordActionOn(client, values, { action: "config.secret.delete", subject: name });
      });
      return {};
    },
  };
}

const setSecretSql = `insert into config_secret (name, sealed, author) values ($1, $2, $3)
  on conflict (name) do update set sealed = excluded.sealed, author = excluded.author,
    update_time = clock_timestamp()
  returning name, author, update_time`;

/** The name of a document in messages that have no name for it. */
const draft = "document";

/** The most problems of an answer: a person repairs the first ones first. */
const problemsMax = 200;

function withoutSource(lines: readonly string[]): string[] {
  return lines.slice(0, problemsMax).map((line) => line.replace(`${draft}:`, ""));
}

/** With those that depend on the time: of prices below the cost of a route. */
function warningsOf(config: Config): string[] {
  return [...config.warnings, ...lossWarnings(config, Date.now())];
}

function refusal(problems: readonly string[]): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, problems.join("\n"), { param: "document" });
}

function author(values: Pick<ContextValues, "get">): string {
  const caller = values.get(callerKey);
  return caller?.kind === "operator" ? actorOf(caller) : "";
}

function isUsed(name: string, document: string): boolean {
  return document.includes(`\${secret:${name}}`);
}

function configMessage(status: ConfigStatus): ConfigMessage {
  const { config, etag, needsRestart, loadMs, problem = "", isFileDifferent } = status;
  return create(ConfigSchema, {
    document: config.document,
    source: config.source,
    revision: BigInt(config.revision ?? 0),
    etag,
    hash: config.hash,
    loadTime: timestampFromMs(loadMs),
    warnings: warningsOf(config),
    needsRestart: [...needsRestart],
    problem,
    fileDiffers: isFileDifferent,
  });
}

function revisionMessage(row: RevisionFacts, newest: string | undefined) {
  return create(ConfigRevisionSchema, {
    revision: BigInt(row.number),
    createTime: timestampFromDate(row.create_time),
    author: row.author,
    note: row.note,
    hash: row.hash ?? "",
    current: row.number === newest,
  });
}

function secretMessage({ name, author: by, update_time: time }: StoredSecret, document: string) {
  return create(ConfigSecretSchema, {
    name,
    author: by,
    updateTime: timestampFromDate(time),
    used: isUsed(name, document),
  });
}

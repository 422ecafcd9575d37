/** Checks of the database, of the clock against it, and of the master key. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Settings } from "../../config/config.ts";
import { failureMessage } from "../../core/error-words.ts";
import { hasDatabase } from "../backend.ts";
import type { CliApp, DatabaseFacts } from "../context.ts";
import { type Finding, findings } from "./finding.ts";

/** Connections of one process, and those that PostgreSQL keeps for its superuser. */
const connectionsOfProcess = 46;
const reservedConnections = 3;

/** NTP keeps clocks within 100 ms; a gateway is not ready from 5 s on. */
const clockMsMax = 5_000;
const clockMsUsual = 500;

/** @param processes serving processes, or 0 if no gateway answers */
export async function checkDatabase(
  { inspectDatabase }: CliApp,
  settings: Settings,
  processes: number,
): Promise<readonly Finding[]> {
  const { skipped, problem } = findings("database");
  if (!hasDatabase(settings)) {
    const text = `there is none in ${settings.dataDir}, and DATABASE_URL is not set`;
    return [skipped(text, "`uas serve` creates one; name a service's variables with --env-file")];
  }
  try {
    const facts = await inspectDatabase(settings);
    const count = Math.max(processes, settings.workers);
    return [
      serverFinding(facts),
      migrationFinding(facts),
      connectionFinding(facts, count, settings),
      clockFinding(facts),
      keyFinding(facts, settings),
    ];
  } catch (error) {
    const remedy = "correct DATABASE_URL, or start the server";
    return [problem(failureMessage(error), remedy)];
  }
}

function serverFinding({ version, isReadOnly }: DatabaseFacts): Finding {
  const { ok, problem } = findings("database");
  const text = `PostgreSQL ${version} answers`;
  const remedy = "connect to the primary: add target_session_attrs=read-write to DATABASE_URL";
  return isReadOnly ? problem(`${text}, but is read-only`, remedy) : ok(text);
}

function migrationFinding({ pending, unknown }: DatabaseFacts): Finding {
  const { ok, warning } = findings("migrations");
  if (unknown.length > 0) {
    const text = `a newer version migrated the database: ${unknown.join(", ")}`;
    return warning(text, "run the doctor of the newer version");
  }
  if (pending.length === 0) return ok("all are applied");
  return warning(
    `not applied: ${pending.join(", ")}`,
    "the next start of the gateway applies them",
  );
}

function connectionFinding(
  { maxConnections }: DatabaseFacts,
  processes: number,
  { databaseUrl }: Settings,
): Finding {
  const { ok, warning } = findings("connections");
  const needed = processes * connectionsOfProcess + reservedConnections;
  const text = `max_connections is ${maxConnections}; ${processes === 1 ? "one process" : `${processes} processes`} may use ${needed}`;
  if (databaseUrl === undefined || maxConnections >= needed) return ok(text);
  return warning(text, `set max_connections to ${needed} or more: calls wait for connections`);
}

function clockFinding({ aheadMs }: DatabaseFacts): Finding {
  const { ok, warning, problem } = findings("clock");
  const difference = Math.abs(aheadMs);
  const text = `${difference} ms ${aheadMs < 0 ? "behind" : "ahead of"} the database's clock`;
  const remedy = "synchronize both machines by NTP";
  if (difference >= clockMsMax) return problem(text, remedy);
  return difference > clockMsUsual ? warning(text, remedy) : ok(text);
}

function keyFinding({ isKeyRight }: DatabaseFacts, { masterKey, dataDir }: Settings): Finding {
  const { ok, skipped, problem } = findings("master key");
  const file = join(dataDir, "master.key");
  const source = masterKey === undefined ? file : "UAS_MASTER_KEY";
  if (masterKey === undefined && !existsSync(file)) {
    const text = "there is none yet: UAS_MASTER_KEY is not set";
    return skipped(text, `the gateway creates ${file} when it needs it; keep a copy of it`);
  }
  if (isKeyRight === false) {
    const text = `the key of ${source} does not open the secrets of the database`;
    return problem(text, "set UAS_MASTER_KEY to the former key, or run `uas master-key rotate`");
  }
  return isKeyRight === undefined
    ? skipped(`from ${source}; no secret uses it yet`)
    : ok(`from ${source}`);
}

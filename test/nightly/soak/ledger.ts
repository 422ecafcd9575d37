/**
 * `npm run soak`: the property test of the ledger, for any duration. With `--memory` it observes a
 * gateway under mixed traffic instead.
 */
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Pool } from "pg";
import { openDatabase } from "../../../src/db/database.ts";
import { startEmbedded } from "../../../src/db/embedded/embedded.ts";
import { checkLedger } from "../../unit/billing/ledger/ledger-commands.ts";
import { readArguments } from "../../support/arguments.ts";
import { printMemory } from "./print-memory.ts";
import { createDatabase, dropDatabase, withDatabase } from "../../support/test-server.ts";

/**
 * Number of sequences per database: the audit after each reads all that the previous ones have
 * left.
 */
const runsPerDatabase = 1_000;

/**
 * Runs `runs` sequences. Throws with the seed and the shortest counterexample if one fails.
 *
 * @param seed of the first database's sequences; each further database has another seed.
 */
export async function soakLedger(adminUrl: string, runs: number, seed: number): Promise<void> {
  process.stdout.write(`seed ${seed}\n`);
  for (let done = 0; done < runs; done += runsPerDatabase) {
    const name = await createDatabase(adminUrl, "template1");
    const url = withDatabase(adminUrl, name);
    await (await openDatabase(url)).close();
    const pool = new Pool({ connectionString: url, max: 4 });
    try {
      await checkLedger({ pool, url }, Math.min(runsPerDatabase, runs - done), seed + done);
    } finally {
      await pool.end();
      await dropDatabase(adminUrl, name);
    }
    process.stdout.write(
      `${Math.min(done + runsPerDatabase, runs)} sequences: the books are right\n`,
    );
  }
}

const usage = `usage: npm run soak -- [options]

  --runs N      how many sequences of operations the ledger is compared with its model (default 10000)
  --memory      watches memory, handles and event loop of a gateway under mixed traffic instead
  --seconds N   how long (default 3600)
  --seed N      the same sequences or requests again; the seed is printed first (default: any)
  --help

It runs on the server of DATABASE_URL, else on an embedded one of its own.
`;

async function main(): Promise<void> {
  const values = readArguments(usage, {
    runs: { type: "string", default: "10000" },
    seed: { type: "string" },
    memory: { type: "boolean", default: false },
    seconds: { type: "string", default: "3600" },
  });
  const runs = Number(values.runs);
  if (!Number.isSafeInteger(runs) || runs < 1)
    throw new Error("--runs must be a whole number from 1");
  const adminUrl = process.env["DATABASE_URL"];
  const seed = Number(values.seed ?? randomInt(2 ** 31 - 1));
  if (!Number.isSafeInteger(seed)) throw new Error("--seed must be a whole number");
  if (values.memory) return printMemory(seed, Number(values.seconds));
  if (adminUrl) return soakLedger(adminUrl, runs, seed);
  const dataDir = mkdtempSync(join(tmpdir(), "uas-soak-"));
  const log = { info() {}, warn: (line: string) => void process.stderr.write(`${line}\n`) };
  const embedded = await startEmbedded({ dataDir, log, testing: true });
  try {
    await soakLedger(embedded.url, runs, seed);
  } finally {
    await embedded.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();

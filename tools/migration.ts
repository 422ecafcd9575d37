/**
 * Writes the next migration: what the entities and the functions of `src/db/sql/` say and the
 * migrated database has not.
 *
 * `npm run migration -- <name>` makes `src/db/migration/NNNN-<name>.ts` and prints the lines to add
 * to `src/db/migrations.ts`; without a name it prints the statements. They are a proposal: read
 * them, put partitions, checks and triggers in by hand. Functions that changed are copied into the
 * folder `src/db/migration/NNNN-<name>/`, from which the migration installs them: the text of its
 * time, whatever `src/db/sql/` says later.
 *
 * `npm run migration -- --release` records the content of all migrations in
 * `src/db/migration/released.json`. From then on a test fails if one of them changes.
 */
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { openDatabase } from "../src/db/database.ts";
import { startEmbedded } from "../src/db/embedded/embedded.ts";
import { hashOf } from "../src/db/migrate.ts";
import released from "../src/db/migration/released.json" with { type: "json" };
import { migrations } from "../src/db/migrations.ts";
import { findFunctionDrift } from "./function-drift.ts";

const folder = join(import.meta.dirname, "../src/db/migration");
const functionFolder = join(import.meta.dirname, "../src/db/sql");

/** Differences of a migrated database. */
interface Drift {
  /** Statements: for tables by their entities, and for functions that no file creates any more. */
  readonly statements: readonly string[];
  /** The functions whose files are new or changed. */
  readonly functions: readonly string[];
}

/** Compares on a separate server, so that no other database is needed or changed. */
async function findDrift(): Promise<Drift> {
  const dataDir = mkdtempSync(join(tmpdir(), "uas-migration-"));
  const log = { info: () => {}, warn: print };
  try {
    const embedded = await startEmbedded({ dataDir, log, testing: true });
    try {
      const database = await openDatabase(embedded.url);
      const sql = await database.orm.schema.getUpdateSchemaSQL({ wrap: false });
      await database.close();
      const tables = sql.split("\n").filter((line) => line.trim() !== "");
      const { statements, functions } = await findFunctions(embedded.url);
      return { statements: [...tables, ...statements], functions };
    } finally {
      await embedded.stop();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function findFunctions(url: string): Promise<Drift> {
  const client = new Client(url);
  await client.connect();
  try {
    const drift = await findFunctionDrift(client);
    return {
      statements: drift
        .filter(({ kind }) => kind === "extra")
        .map(({ signature }) => `drop routine ${signature};`),
      functions: drift.filter(({ kind }) => kind !== "extra").map(({ name }) => name),
    };
  } finally {
    await client.end();
  }
}

/** The number after the last one used. */
function nextNumber(): string {
  const used = readdirSync(folder).map((file) => Number.parseInt(file, 10));
  return String(Math.max(0, ...used.filter(Number.isInteger)) + 1).padStart(4, "0");
}

function write(name: string, { statements, functions }: Drift): void {
  const number = nextNumber();
  const file = `${number}-${name}`;
  writeFileSync(join(folder, `${file}.ts`), migrationText(file, { statements, functions }), {
    flag: "wx",
  });
  if (functions.length > 0) mkdirSync(join(folder, file));
  for (const changed of functions.map((routine) => `${routine}.sql`)) {
    copyFileSync(join(functionFolder, changed), join(folder, file, changed));
  }
  print(`made src/db/migration/${file}.ts; add to src/db/migrations.ts, then run npm run format:`);
  print(`  import { ${constantName(file)} } from "./migration/${file}.ts";`);
  print(`  ${constantName(file)},`);
}

function migrationText(file: string, { statements, functions }: Drift): string {
  const texts = statements.map((statement) => JSON.stringify(statement));
  const imports = [`import type { Migration } from "../migrate.ts";`];
  if (functions.length > 0) {
    imports.push(`import { readFunctions } from "../sql.ts";`);
    texts.push(`...readFunctions("migration/${file}/")`);
  }
  return `${imports.join("\n")}

/** Why this change. */
export const ${constantName(file)}: Migration = {
  name: "${file}",
  compatibleFrom: "${newestReleased()}",
  statements: () => [${texts.join(", ")}],
};
`;
}

/** The newest migration of the previous release, whose program has to run beside the next one. */
function newestReleased(): string {
  const names = Object.keys(released).length > 0 ? Object.keys(released) : namesOfAll();
  return names.toSorted().at(-1) ?? "";
}

function namesOfAll(): string[] {
  return migrations.map(({ name }) => name);
}

/** `0002-key-name` becomes `keyName0002`. */
function constantName(file: string): string {
  const words = file.slice(5).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return `${words}${file.slice(0, 4)}`;
}

/**
 * Records unrecorded migrations. A released migration keeps its record; a test fails if it has
 * changed.
 */
function release(): void {
  const hashes = migrations.map((migration) => [migration.name, hashOf(migration)]);
  const all = { ...Object.fromEntries(hashes), ...released };
  writeFileSync(join(folder, "released.json"), `${JSON.stringify(all, null, 2)}\n`);
  print(`recorded in src/db/migration/released.json: ${namesOfAll().join(", ")}`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(name: string | undefined): Promise<void> {
  if (name === "--release") {
    release();
    return;
  }
  if (name !== undefined && !/^[a-z]+(?:-[a-z]+)*$/.test(name)) {
    print(
      "a migration's name is lower-case words with hyphens between: npm run migration -- key-name",
    );
    process.exitCode = 2;
    return;
  }
  const drift = await findDrift();
  if (drift.statements.length === 0 && drift.functions.length === 0) {
    print("nothing to do: the migrations make what the entities and src/db/sql say");
  } else if (name !== undefined) write(name, drift);
  else {
    for (const statement of drift.statements) print(statement);
    for (const changed of drift.functions) print(`install src/db/sql/${changed}.sql`);
  }
}

await main(process.argv[2]);

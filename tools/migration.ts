/**
 * Writes the next migration: what the entities say and the migrated database has not.
 *
 * `npm run migration -- <name>` makes `src/db/migration/NNNN-<name>.ts` and says which line to add to
 * `src/db/migrations.ts`; without a name it prints the statements. They are a proposal: read them, put
 * partitions, checks and functions in by hand.
 */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../src/db/database.ts";
import { startEmbedded } from "../src/db/embedded.ts";

const folder = join(import.meta.dirname, "../src/db/migration");

/** Compares on a server of its own, so that it needs and changes nobody's database. */
async function findDrift(): Promise<string[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "uas-migration-"));
  const log = { info: () => {}, warn: print };
  try {
    const embedded = await startEmbedded({ dataDir, log, testing: true });
    try {
      const database = await openDatabase(embedded.url);
      const sql = await database.orm.schema.getUpdateSchemaSQL({ wrap: false });
      await database.close();
      return sql.split("\n").filter((line) => line.trim() !== "");
    } finally {
      await embedded.stop();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The number after the last one used. */
function nextNumber(): string {
  const used = readdirSync(folder).map((file) => Number.parseInt(file, 10));
  return String(Math.max(0, ...used.filter(Number.isInteger)) + 1).padStart(4, "0");
}

function write(name: string, statements: readonly string[]): void {
  const number = nextNumber();
  const className = `${pascalCase(name)}${number}`;
  const lines = statements.map((statement) => `    this.addSql(${JSON.stringify(statement)});`);
  const text = `import { Migration } from "@mikro-orm/migrations";

/** Why this change. */
export class ${className} extends Migration {
  override up(): void {
${lines.join("\n")}
  }
}
`;
  const file = `${number}-${name}`;
  writeFileSync(join(folder, `${file}.ts`), text, { flag: "wx" });
  print(`made src/db/migration/${file}.ts; add to src/db/migrations.ts, then run npm run format:`);
  print(`  { name: "${file}", class: ${className} },`);
}

function pascalCase(name: string): string {
  return name.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main(name: string | undefined): Promise<void> {
  if (name !== undefined && !/^[a-z]+(?:-[a-z]+)*$/.test(name)) {
    print(
      "a migration's name is lower-case words with hyphens between: npm run migration -- key-name",
    );
    process.exitCode = 2;
    return;
  }
  const statements = await findDrift();
  if (statements.length === 0) print("nothing to do: the migrations make what the entities say");
  else if (name === undefined) for (const statement of statements) print(statement);
  else write(name, statements);
}

await main(process.argv[2]);

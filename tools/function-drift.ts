/** Compares the SQL functions of a migrated database with their files in `src/db/sql/`. */
import type { ClientBase } from "pg";
import { readFunctions } from "../src/db/sql.ts";

/** A function that a database and its file do not agree on. */
export interface FunctionDrift {
  readonly name: string;
  /** Its name and the types of its parameters, as `drop function` takes it. */
  readonly signature: string;
  /**
   * `changed`: the file says something else; `missing`: only the file is there; `extra`: no file
   * makes it.
   */
  readonly kind: "changed" | "missing" | "extra";
}

/** A function as the catalogue has it. */
interface FoundFunction {
  readonly schema: string;
  readonly name: string;
  readonly signature: string;
  readonly definition: string;
}

/** The schema into which the files are installed, within a transaction that is rolled back. */
const scratch = "function_drift";

/**
 * Definitions of the functions of two schemas, including aggregates, for which PostgreSQL has no
 * function that writes SQL. Functions of extensions are excluded.
 */
const findStatement = `
select nspname as schema, proname as name, p.oid::regprocedure::text as signature,
    case prokind when 'a' then (select row_to_json(a)::text from pg_aggregate a where a.aggfnoid = p.oid)
      else pg_get_functiondef(p.oid) end
      || row_to_json((select r from (select proparallel, provolatile, proisstrict, proconfig) r)) as definition
  from pg_proc p join pg_namespace n on n.oid = pronamespace
  where nspname in ('public', $1) and not exists (
    select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
  order by proname, signature`;

/**
 * Installs the files into a separate schema and compares PostgreSQL's result with the existing
 * functions. Differences of meaning are found; differences of white space outside the bodies are
 * not. Leaves nothing behind.
 */
export async function findFunctionDrift(client: ClientBase): Promise<FunctionDrift[]> {
  await client.query("begin");
  try {
    await client.query(`create schema ${scratch}; set local search_path = ${scratch}, public`);
    for (const text of readFunctions("sql/")) await client.query(text);
    const { rows } = await client.query<FoundFunction>(findStatement, [scratch]);
    return compare(rows);
  } finally {
    await client.query("rollback");
  }
}

function compare(rows: readonly FoundFunction[]): FunctionDrift[] {
  const ours = new Map<string, FoundFunction>();
  const wanted = new Map<string, FoundFunction>();
  for (const row of rows) {
    const signature = withoutSchema(row.signature);
    (row.schema === scratch ? wanted : ours).set(signature, row);
  }
  const drift: FunctionDrift[] = [];
  for (const [signature, { name, definition }] of wanted) {
    const found = ours.get(signature)?.definition;
    if (found === undefined) drift.push({ name, signature, kind: "missing" });
    else if (withoutSchema(found) !== withoutSchema(definition)) {
      drift.push({ name, signature, kind: "changed" });
    }
  }
  for (const [signature, { name }] of ours) {
    if (!wanted.has(signature)) drift.push({ name, signature, kind: "extra" });
  }
  return drift;
}

function withoutSchema(text: string): string {
  return text.replaceAll(`${scratch}.`, "").replaceAll("public.", "");
}

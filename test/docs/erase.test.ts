/** The statements of docs/secure.md that erase a customer. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type DemoGateway, startDemoGateway } from "./demo-gateway.ts";
import { blocksOf, readPage } from "./page.ts";

const cwd = mkdtempSync(join(tmpdir(), "uas-erase-"));
const secret = "a text about a person";
let gateway: DemoGateway;
let sql: Client;

beforeAll(async () => {
  gateway = await startDemoGateway(cwd);
  sql = new Client({ connectionString: gateway.env["DATABASE_URL"] });
  await sql.connect();
});
afterAll(async () => {
  await sql?.end();
  // Fails if the ledger audit finds a broken rule.
  await gateway?.close();
  rmSync(cwd, { recursive: true, force: true });
});

async function send(path: string, body?: object): Promise<Record<string, unknown>> {
  const reply = await fetch(`${gateway.publicUrl}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${gateway.env["UAS_API_KEY"]}`,
      "content-type": "application/json",
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect(reply.status).toBeLessThan(300);
  return (await reply.json()) as Record<string, unknown>;
}

/** The tables, other than the call log and the ledger, that contain the text. */
async function tablesWithText(): Promise<string[]> {
  const { rows } = await sql.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  const found: string[] = [];
  for (const { name } of rows) {
    const { rowCount } = await sql.query(
      `select from "${name}" as each where to_jsonb(each)::text like $1 or to_jsonb(each)::text like $2`,
      [`%${secret}%`, `%${Buffer.from(secret).toString("hex")}%`],
    );
    if ((rowCount ?? 0) > 0) found.push(name);
  }
  return found.toSorted();
}

it("the statements of docs/secure.md delete the texts of an account, and the ledger stays right", async () => {
  await send("/v1/responses", { model: "demo/instant", input: secret, store: true });
  const { taskId } = await send("/api/ai/tasks", {
    modelKey: "demo-image",
    imageParams: { prompt: secret },
    callbackUrl: "https://hooks.example/tasks",
  });
  for (let status: unknown = "progress"; status === "progress"; ) {
    ({ status } = await send(`/api/ai/tasks/${String(taskId)}?wait=10`));
  }
  expect(await tablesWithText()).toEqual(["stored_response", "task"]);

  const [block] = blocksOf(readPage("docs/secure.md"), ["sql"]);
  const statements = block?.text.replaceAll(":'account'", `'${gateway.env["ACCOUNT"]}'`) ?? "";
  await sql.query(`begin; ${statements} commit`);

  expect(await tablesWithText()).toEqual([]);
  const { rows } = await sql.query("select from result_file where expire_time > now()");
  expect(rows).toEqual([]);
});

/** Serves `/openapi.json` and `/llms.txt`, which `npm run generate` writes from the contract. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { packageFolder } from "../../core/package.ts";

const folder = join(packageFolder, "gen");

/**
 * Registers both documents. They need no key.
 *
 * @param prefixes the paths under which this gateway serves vendors' native APIs
 */
export function registerDocuments(app: FastifyInstance, prefixes: readonly string[]): void {
  const openapi = readFileSync(join(folder, "openapi.json"));
  const llms = readFileSync(join(folder, "llms.txt"), "utf8");
  const natives = prefixes.map((prefix) => `- \`${prefix}\`\n`);
  const own = natives.length === 0 ? "" : `\n## Native APIs of vendors\n\n${natives.join("")}`;
  app.get("/openapi.json", (_request, reply) =>
    reply.type("application/json; charset=utf-8").send(openapi),
  );
  app.get("/llms.txt", (_request, reply) =>
    reply.type("text/plain; charset=utf-8").send(llms + own),
  );
}

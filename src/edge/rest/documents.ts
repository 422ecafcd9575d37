/** Serves `/openapi.json` and `/llms.txt`, which `npm run generate` writes from the contract. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { packageFolder } from "../../core/package.ts";

const folder = join(packageFolder, "gen");

/**
 * Registers both documents. They need no key.
 *
 * @param prefixes returns the paths under which this gateway serves vendors' native APIs
 */
export function registerDocuments(app: FastifyInstance, prefixes: () => readonly string[]): void {
  const openapi = readFileSync(join(folder, "openapi.json"));
  const llms = readFileSync(join(folder, "llms.txt"), "utf8");
  app.get("/openapi.json", (_request, reply) =>
    reply.type("application/json; charset=utf-8").send(openapi),
  );
  app.get("/llms.txt", (_request, reply) =>
    reply.type("text/plain; charset=utf-8").send(llms + nativeSection(prefixes())),
  );
}

function nativeSection(prefixes: readonly string[]): string {
  if (prefixes.length === 0) return "";
  const natives = prefixes.map((prefix) => `- \`${prefix}\`\n`);
  return `\n## Native APIs of vendors\n\n${natives.join("")}`;
}

/** `webhooks:` of a configuration: exemptions from the rules of webhook addresses, for tests. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { z } from "zod";
import type { Parsed } from "./address.ts";
import { type ReferenceSource, readProblem } from "./references.ts";
import { quote, text } from "./scalars.ts";
import { list, section } from "./schema.ts";

/** Webhook settings for tests. */
export type WebhookConfig = z.output<ReturnType<typeof webhooksSchema>>;

/** The schema of the section. */
export function webhooksSchema(references: ReferenceSource) {
  return section(
    {
      /** Exact hosts that are exempt from the public-address rule. */
      allow_hosts: list(text(references, 253, { parse: parseHost }), "host names").default([]),
      /** A CA certificate file to trust in addition to the system's. */
      ca_file: text(references, 4_000, { parse: (path) => parseFile(path, references) }).optional(),
    },
    { about: webhookKeys },
  );
}

const webhookKeys = {
  allow_hosts: "Exact hosts that webhooks may reach although their addresses are not public.",
  ca_file: "A file with an additional trusted certificate authority.",
};

function parseHost(written: string): Parsed<string> {
  const value = written.toLowerCase();
  if (/^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/.test(value)) return { value };
  const fix = "write its name or address only, such as hooks.test";
  return { problem: `${quote(value)} is not an exact host: ${fix}` };
}

function parseFile(path: string, { folder, placeholder }: ReferenceSource): Parsed<string> {
  if (placeholder !== undefined && path.includes(placeholder)) return { value: path };
  const file = resolve(folder, path);
  try {
    readFileSync(file);
    return { value: file };
  } catch (error) {
    return { problem: `file ${file} ${readProblem(error)}` };
  }
}

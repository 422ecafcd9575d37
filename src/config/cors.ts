/** `cors:` of a configuration: the origins whose pages may call the public listener. */
import type { z } from "zod";
import type { Parsed } from "./address.ts";
import type { ReferenceSource } from "./references.ts";
import { quote, text } from "./scalars.ts";
import { list, section } from "./schema.ts";

/** The origins whose pages may read replies. */
export type CorsConfig = z.output<ReturnType<typeof corsSchema>>;

/** The schema of the section. */
export function corsSchema(references: ReferenceSource) {
  return section(
    {
      /**
       * Exact origins such as `https://app.example`, or `"*"` for every origin. Default none: pages
       * cannot call.
       */
      origins: list(text(references, 300, { parse: parseOrigin }), "origins").default([]),
    },
    { about: corsKeys },
  );
}

const corsKeys = {
  origins:
    'Exact [origins of web pages](configuration.md#pages-of-other-origins), or `["*"]` for all. Default: none.',
};

function parseOrigin(written: string): Parsed<string> {
  if (written === "*") return { value: "*" };
  const url = URL.parse(written);
  const isHttp = url?.protocol === "https:" || url?.protocol === "http:";
  if (isHttp && url.origin === written.toLowerCase()) return { value: url.origin };
  const fix = 'write scheme, host and port only, such as https://app.example, or "*" for all';
  return { problem: `${quote(written)} is not an origin: ${fix}` };
}

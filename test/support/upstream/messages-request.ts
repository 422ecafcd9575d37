/** The shape of messages requests that Anthropic accepts: every member of every block is known. */
import { messagesTool } from "./messages-tools.ts";
import {
  anything,
  either,
  flag,
  integer,
  list,
  map,
  nullable,
  number,
  record,
  type Shape,
  tagged,
  text,
  words,
} from "./shape.ts";

const cacheControl = record({ "type!": words("ephemeral"), ttl: words("5m", "1h") });
const cached = { cache_control: nullable(cacheControl) };
const base64 = text({ min: 1, pattern: /^[A-Za-z0-9+/]+=*$/ });
const url = text({ pattern: /^https?:\/\// });

const textBlock = record({
  type: text(),
  "text!": text(),
  citations: nullable(list(anything)),
  ...cached,
});

const image = record({
  type: text(),
  "source!": tagged("type", {
    base64: record({
      type: text(),
      "media_type!": words("image/jpeg", "image/png", "image/gif", "image/webp"),
      "data!": base64,
    }),
    url: record({ type: text(), "url!": url }),
    file: record({ type: text(), "file_id!": text() }),
  }),
  ...cached,
});

const document = record({
  type: text(),
  "source!": tagged("type", {
    base64: record({ type: text(), "media_type!": words("application/pdf"), "data!": base64 }),
    text: record({ type: text(), "media_type!": words("text/plain"), "data!": text() }),
    url: record({ type: text(), "url!": url }),
    file: record({ type: text(), "file_id!": text() }),
    content: record({ type: text(), "content!": anything }),
  }),
  title: nullable(text()),
  context: nullable(text()),
  citations: nullable(record({ enabled: flag })),
  ...cached,
});

const searchResult = record({
  type: text(),
  "source!": text(),
  "title!": text(),
  "content!": list(textBlock),
  citations: nullable(record({ enabled: flag })),
  ...cached,
});

const id = text({ min: 1, pattern: /^[a-zA-Z0-9_-]+$/ });

const blocks: Readonly<Record<string, Shape>> = {
  text: textBlock,
  image,
  document,
  search_result: searchResult,
  thinking: record({ type: text(), "thinking!": text(), "signature!": text() }),
  redacted_thinking: record({ type: text(), "data!": text() }),
  tool_use: record({
    type: text(),
    "id!": id,
    "name!": text({ min: 1, max: 200 }),
    "input!": map(anything),
    caller: anything,
    ...cached,
  }),
  tool_result: record({
    type: text(),
    "tool_use_id!": id,
    content: either({
      string: text(),
      array: list(
        tagged("type", { text: textBlock, image, document, search_result: searchResult }),
      ),
    }),
    is_error: nullable(flag),
    ...cached,
  }),
};

const message = tagged("role", {
  user: record({
    role: text(),
    "content!": either({ string: text(), array: list(tagged("type", blocks)) }),
  }),
  assistant: record({
    role: text(),
    "content!": either({ string: text(), array: list(tagged("type", blocks)) }),
  }),
  system: record({
    role: text(),
    "content!": either({ string: text(), array: list(textBlock) }),
  }),
});

const display = { display: nullable(words("summarized", "omitted")) };

const thinking = tagged("type", {
  enabled: record({ type: text(), "budget_tokens!": integer(1_024), ...display }),
  adaptive: record({ type: text(), ...display }),
  disabled: record({ type: text() }),
  between_tools: record({ type: text() }),
});

const isParallel = { disable_parallel_tool_use: flag };

const members: Readonly<Record<string, Shape>> = {
  "model!": text({ min: 1, max: 256 }),
  "max_tokens!": integer(0),
  "messages!": list(message, { min: 1 }),
  cache_control: nullable(cacheControl),
  container: nullable(anything),
  diagnostics: nullable(anything),
  inference_geo: nullable(text()),
  metadata: record({ user_id: nullable(text({ max: 512 })) }),
  output_config: record({
    effort: nullable(words("low", "medium", "high", "xhigh", "max")),
    format: nullable(record({ "type!": words("json_schema"), "schema!": map(anything) })),
    task_budget: anything,
  }),
  service_tier: words("auto", "standard_only"),
  speed: nullable(words("standard", "fast")),
  stop_sequences: list(text({ pattern: /\S/ })),
  stream: flag,
  system: either({ string: text(), array: list(textBlock) }),
  thinking,
  tool_choice: tagged("type", {
    auto: record({ type: text(), ...isParallel }),
    any: record({ type: text(), ...isParallel }),
    tool: record({ type: text(), "name!": text(), ...isParallel }),
    none: record({ type: text() }),
  }),
  tools: list(messagesTool),
};

const sampling = {
  temperature: number(0, 1),
  top_k: integer(0),
  top_p: number(0, 1),
};

const beta = {
  billing_policy: anything,
  compaction: anything,
  context_management: anything,
  fallback_credit_token: anything,
  fallbacks: anything,
  mcp_servers: anything,
  output_format: anything,
  thread: anything,
};

/** The versions of the interface, and what each takes; both take more if a beta is named. */
const bodies: Readonly<Record<string, Shape>> = {
  "2023-06-01": record({ ...members, ...sampling }),
  "2026-10-21": record(members),
  "2023-06-01 beta": record({ ...members, ...sampling, ...beta }),
  "2026-10-21 beta": record({ ...members, ...beta }),
};

/** Throws ShapeError if a member is unknown in this version, missing or of the wrong kind. */
export function checkShape(json: unknown, version: string, hasBeta: boolean): void {
  bodies[`${version}${hasBeta ? " beta" : ""}`]?.(json, []);
}

/** Whether there is such a version. */
export function isVersion(version: string | undefined): boolean {
  return version === "2023-06-01" || version === "2026-10-21";
}

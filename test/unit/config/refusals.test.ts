import { describe, expect, it } from "vitest";
import { allKinds, problemsOf } from "./support.ts";

/** One vendor and one model, with parts replaced. */
function file({ vendor = "", model = "", price = "input: 1, output: 1", tail = "" } = {}): string {
  return `version: 1
vendors:
  a: { kind: openai-compatible, base_url: https://a.example/v1${vendor} }
models:
  m: { type: TEXT, routes: [{ vendor: a, model: x }], max_output_tokens: 5, price: { ${price} }${model} }
${tail}`;
}

/** The messages without place and path. */
function messages(yaml: string, env: Record<string, string> = {}): string[] {
  return problemsOf(yaml, { env, kinds: allKinds }).map((line) =>
    line.replace(/^\S+ (\S+: )?/, ""),
  );
}

it("the file that the tables below change is valid", () => {
  expect(messages(file())).toEqual([]);
});

describe("a literal secret is refused, and its text is not repeated", () => {
  const secret = "sk-live-0123456789";
  it.each([
    ["in quotes", file({ vendor: `, api_key: "${secret}"` })],
    ["beside a reference", file({ vendor: `, api_key: "${secret}\${env:KEY}"` })],
    ["under a wrong key", file({ vendor: `, apikey: ${secret}` })],
    ["without a key", file({ vendor: `, ${secret}` })],
    ["in a list", file({ vendor: `, api_key: [${secret}]` })],
    ["after a closing quote", file({ vendor: `, api_key: "x" ${secret}` })],
    ["in an address", file({ tail: `x: 1` }).replace("//a.ex", `//u:${secret}@a.ex`)],
    ["in a query", file().replace("/v1", `/v1?key=${secret}`)],
    ["as a block", file().replace(/ {2}a: .*/, `  a:\n    api_key: |\n      ${secret}`)],
    ["with broken YAML", file({ vendor: `, api_key: "${secret}` })],
  ])("a literal secret %s is refused, and its text is not repeated", (_case, yaml) => {
    const problems = problemsOf(yaml, { env: { KEY: "k" } });
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.join("\n")).not.toContain(secret);
    expect(problems.join("\n")).toMatch(/^uas\.yaml:\d+:\d+ /);
  });

  it("the value of a reference that cannot be sent is refused and not repeated", () => {
    const problems = messages(file({ vendor: ', api_key: "${env:KEY}"' }), { KEY: "line\nbreak" });
    expect(problems).toEqual([
      "the value of ${env:KEY} is not a credential: it contains spaces, line breaks or other characters that cannot be sent",
    ]);
  });
});

describe("each refusal says what to do", () => {
  it.each([
    [', api_key: "${env:NONE}"', "environment variable NONE is not set"],
    [', api_key: "${env:EMPTY}"', "environment variable EMPTY is empty"],
    [', api_key: "${file:/no/such}"', "file /no/such does not exist"],
    [', api_key: "${file:.}"', expect.stringMatching(/ is not a file$/)],
    [', api_key: "${vault:x}"', expect.stringMatching(/^keep secrets out of this file/)],
    [', api_key: "${env:}"', expect.stringMatching(/^write "\$\{env:NAME\}"/)],
    [', native_prefix: "gemini"', expect.stringMatching(/^must be a slash and one path segment/)],
    [", native_prefix: /a/b", expect.stringMatching(/^must be a slash and one path segment/)],
    [", native_prefix: /v1", "/v1 is a path of the gateway itself; choose another"],
    [", dialects: []", "name at least one dialect, or leave the key out"],
    [", dialects: [chat]", '"chat" is not known, did you mean "chat-completions"?'],
    [", dialects: [cats]", expect.stringMatching(/^"cats" is not known \(there is: chat-compl/)],
    [", dialects: [messages, messages]", "messages is listed twice; keep one"],
    [", max_in_flight: 0", expect.stringMatching(/^must be a whole number from 1/)],
    [", polls_per_second: 0", expect.stringMatching(/^must be a whole number from 1/)],
    [", max_in_flight: 1.5", expect.stringMatching(/^must be a whole number from 1/)],
    [", timeouts: { idle: 5 }", expect.stringMatching(/^must be a whole number with its unit/)],
    [", timeouts: { idle: 0s }", expect.stringMatching(/^must be a whole number with its unit/)],
    [", timeouts: { idle: 25h }", expect.stringMatching(/^must be a whole number with its unit/)],
    [", timeouts: 5s", "must be a map with the keys connect, first_byte, idle, total"],
    [", on_disconnect: stop", '"stop" is not known (there is: grace, drain, abort)'],
    [", unknown_betas: allow", '"allow" is not known (there is: refuse, pass)'],
    [", run_base_url: https://b.example", "only kind fal has it; remove it"],
    [", kind: fal", "this key is given twice; keep one"],
    [", file_buckets: [a]", "only kind gemini has it; remove it"],
  ])('a vendor with "%s" is refused with what to do', (vendor, message) => {
    expect(messages(file({ vendor }), { EMPTY: " " })).toContainEqual(message);
  });

  it.each([
    [", deadlin: 2h", 'unknown key, did you mean "deadline"?'],
    [", deadlineMs: 5000", expect.stringMatching(/^unknown key/)],
    [", deadline: 0s", expect.stringMatching(/^must be a whole number with its unit/)],
    [", deadline: 25h", expect.stringMatching(/^must be a whole number with its unit/)],
    [", deadline: 1800", expect.stringMatching(/^must be a whole number with its unit/)],
    [", min_second: 8", 'unknown key, did you mean "min_seconds"?'],
    [", min_seconds: 8", "only VIDEO and AUDIO models have a length; remove it"],
    [", cancel_biling: none", 'unknown key, did you mean "cancel_billing"?'],
    [", cancel_billing: upstraem", expect.stringMatching(/did you mean "upstream"\?$/)],
    [", cancel_billing: true", '"true" is not known (there is: none, upstream)'],
    [", deadline: [2h]", expect.stringMatching(/^must be a whole number with its unit/)],
  ])('a model with "%s" is refused with what to do', (model, message) => {
    expect(messages(file({ model }))).toContainEqual(message);
  });

  it.each([
    ["input: 1", expect.stringMatching(/^output is missing: add price: \{/)],
    ["output: 1", expect.stringMatching(/^input is missing: add price: \{/)],
    [
      "input: 1, output: 1, image: 1",
      expect.stringMatching(/^TEXT models have no such price; use one of input, /),
    ],
    ["input: 1, output: 0.0000000001", expect.stringMatching(/is not a price/)],
    ["input: 1, output: 12345678901", expect.stringMatching(/is not a price/)],
    ["input: 1, output: .5", expect.stringMatching(/is not a price/)],
    ["input: 1, output: 0x10", expect.stringMatching(/is not a price/)],
    ["input: 1, output: [1]", 'must be a price such as "0.25"'],
    ["input: 1, output: ''", 'must be a price such as "0.25"'],
    ["input: 1, output: ", expect.stringMatching(/^output is missing/)],
    ["input: 1, outptu: 1, output: 1", 'unknown key, did you mean "output"?'],
    ["input: 1, output: 1, from: 2026-01-01", expect.stringMatching(/^unknown key/)],
    ["input: 1, output: 1, tiers: []", "name at least one tier, or leave the key out"],
    ["input: 1, output: 1, tiers: 5", expect.stringMatching(/^must be a list of tiers/)],
    ["input: 1, output: 1, tiers: [{ input: 2 }]", expect.stringMatching(/^above is missing: add/)],
    [
      "input: 1, output: 1, tiers: [{ above: 0, input: 2 }]",
      expect.stringMatching(/^must be a who/),
    ],
    [
      "input: 1, output: 1, tiers: [{ above: 9 }]",
      expect.stringMatching(/^none of input, cached_/),
    ],
    ["input: 1, output: 1, tiers: [{ above: 9, image: 1 }]", expect.stringMatching(/^unknown key/)],
    [
      "input: 1, output: 1, tiers: [{ above: 9, input: 2 }, { above: 9, input: 3 }]",
      "must be more than in the tier before, 9",
    ],
  ])("a price is refused with what to do: %s", (price, message) => {
    expect(messages(file({ price }))).toContainEqual(message);
  });

  it.each([
    ["[]", "name at least one price"],
    ["5, imagee: 5", 'unknown key, did you mean "image"?'],
    ["[{ size: 1024x1024 }]", expect.stringMatching(/^price is missing: add the price in USD per/)],
    ["[{ size: auto, price: 1 }]", expect.stringMatching(/^must be a vendor's word, such as/)],
    ["[{ sise: 2k, price: 1 }]", 'unknown key, did you mean "size"?'],
    ["[{ price: -1 }]", expect.stringMatching(/is not a price/)],
    ["[5]", expect.stringMatching(/^must be a map/)],
    ["{ size: 2k }", 'must be a price such as "0.25"'],
    [
      "[{ quality: low, price: 1 }, { size: 2k, quality: LOW, price: 2 }]",
      "never applies: an earlier row matches all these images; put the more specific row first",
    ],
  ])("a price of images is refused with what to do: %s", (table, message) => {
    const yaml = file({ price: `image: ${table}` })
      .replace("type: TEXT", "type: IMAGE")
      .replace("max_output_tokens: 5, ", "");
    expect(messages(yaml)).toContainEqual(message);
  });

  it.each([
    ["[]", "name at least one price"],
    ["[{ input: 1, output: 1 }, { input: 2, output: 2 }]", "from is missing: only the first price"],
    [
      "[{ from: 2026-02-29, input: 1, output: 1 }]",
      '"2026-02-29" is not a date or time: write a date such',
    ],
    [
      "[{ from: 2026-13-01, input: 1, output: 1 }]",
      '"2026-13-01" is not a date or time: write a date such',
    ],
    [
      "[{ from: tomorrow, input: 1, output: 1 }]",
      '"tomorrow" is not a date or time: write a date such as',
    ],
    [
      "[{ from: 2026-01-01 09:00, input: 1, output: 1 }]",
      "is not a date or time: write a date such as",
    ],
    [
      '[{ from: "2026-01-01T09:00:00", input: 1, output: 1 }]',
      "is not a date or time: write a date such",
    ],
    [
      '[{ from: "2026-01-01T25:00:00Z", input: 1, output: 1 }]',
      "is not a date or time: write a date such",
    ],
    ["[{ input: 1, output: 1 }, { from: 2025-01-01, input: 1 }]", "output is missing: add price"],
    [
      '[{ from: 2025-01-01, input: 1, output: 1 }, { from: "2025-01-01T01:00:00+01:00", input: 1, output: 1 }]',
      "the price before applies from the same time; keep one of them",
    ],
    [
      "[{ from: 2025-02-01, input: 1, output: 1 }, { from: 2025-01-01, input: 1, output: 1 }]",
      "is earlier than in the price before: sort the prices by time",
    ],
  ])("a list of prices %s, also as the cost of a route", (list, message) => {
    const listed = file().replace("{ input: 1, output: 1 }", list);
    expect(messages(listed).join("\n")).toContain(message);
    const cost = file().replace("model: x }", `model: x, cost: ${list} }`);
    const costs = message.replace("add price", "add cost");
    expect(messages(cost).join("\n")).toContain(costs);
  });

  it("a price list out of order is reported at the date in question", () => {
    const list =
      "[{ from: 2025-02-01, input: 1, output: 1 }, { from: 2025-01-01, input: 1, output: 1 }]";
    const cost = file().replace("model: x }", `model: x, cost: ${list} }`);
    expect(problemsOf(cost)).toEqual([
      "uas.yaml:5:110 models.m.routes[0].cost[1].from: is earlier than in the price before: sort the prices by time",
    ]);
  });

  it.each([
    [
      file({ price: "input: 1" }).replace("TEXT", "VIDEO"),
      "none of second, request, output is given",
    ],
    [
      file({ price: "second: 1", model: ", min_seconds: 0" }).replace("TEXT", "VIDEO"),
      "must be a whole number",
    ],
    [
      file({ price: "image: 1", model: ", reasoning: true" }).replace("TEXT", "IMAGE"),
      "only TEXT models reason; remove it",
    ],
    [file().replace("type: TEXT, ", ""), "type is missing: name one of TEXT, IMAGE, VIDEO, AUDIO"],
    [file().replace("max_output_tokens: 5, ", ""), "max_output_tokens is missing: add the maximum"],
    [file().replace("tokens: 5", "tokens: 2147483648"), "must be a whole number from 1"],
    [file().replace(", model: x", ""), "model is missing: add the vendor's own name"],
    [file().replace("[{ vendor: a, model: x }]", "{ vendor: a }"), "must be a list of routes"],
    [file().replace("model: x }", "model: x }, { vendor: a, model: x }"), "this route is listed"],
    [file().replace("  m:", "  a b:"), '"a b" is not a model name'],
    [file().replace("  m:", "  a/../b:"), '"a/../b" is not a model name'],
    [file().replace("  m:", "  ? [m]\n  :"), "a key must be a single word"],
    [file().replace("  a: {", "  a b: {"), "not a vendor name: use 1 to 64 letters"],
    [file().replace("version: 1", ""), "version is missing: add version: 1"],
    [file().replace(/models:[^]*/, ""), "models is missing: add the models"],
    [file({ tail: "webhooks: { allow_hosts: ['https://x'] }" }), "is not an exact host"],
    [file({ tail: "cors: { origins: [app.example] }" }), "is not an origin"],
    [file({ tail: "retention: { calls: 90 }" }), "must be a whole number of days, such as 90d"],
    [file({ tail: "retention: { calls: 0d }" }), "must be a whole number of days, such as 90d"],
    [file({ tail: "retention: { ledger: 90d }" }), "unknown key"],
    [file({ tail: "cors: { origins: ['https://app.example/'] }" }), "is not an origin"],
    [file({ tail: "webhooks: { ca_file: /no/ca.pem }" }), "file /no/ca.pem does not exist"],
    [file({ tail: "storage: {}" }), "kind is missing: name one of local, s3"],
    [file({ tail: "storage: { kind: gcs }" }), '"gcs" is not known'],
    [file({ tail: "storage: { kind: local, bucket: abc }" }), "only kind s3 has it; remove it"],
    [file({ tail: "storage: { kind: s3, bucket: abc }" }), "region is missing: add the bucket's"],
    [file({ tail: "storage: { kind: s3, region: x }" }), "bucket is missing: add the name"],
    [
      file({ tail: "storage: { kind: s3, bucket: A_b, region: x }" }),
      '"A_b" is not valid: use 3 to',
    ],
    [file({ tail: "storage: { kind: s3, region: 'a b' }" }), '"a b" is not valid: use letters'],
    [file({ tail: "storage: { kind: s3, access_key_id: AKIA }" }), "keep secrets out of this file"],
    [file({ tail: "storage: { kind: s3, force_path_style: 1 }" }), '"1" is not known'],
    [file({ tail: "storage: { kind: s3, endpoint: s3.test }" }), "must be an address such as"],
    [file().replace("a: {", "a: !x {"), "tags such as !x have no meaning here"],
    [file().replace("kind: openai-compatible", "kind: *k"), "no anchor of this name"],
    [file().replace("https://a", "${env:NAME}://a"), 'inside { … } write "${env:NAME}" in quotes'],
    [file().replace("  a:", "\ta:"), "a tab cannot indent; use spaces"],
    [file().replace("example/v1 }", "example/v1"), "bracket"],
    ["", "must be a map with the keys version"],
    ["just text", "must be a map with the keys version"],
    ["--- {}\n--- {}", "the file contains several documents"],
    ["[".repeat(50_000), "nested too deeply"],
    [`x: ${"y".repeat(1024 * 1024)}`, "the file is larger than"],
    [`a: &a 1\nb: [${"*a,".repeat(1_001)}]`, "more than 1000 aliases"],
  ])("a file that is no configuration is refused with what to do (%#)", (yaml, message) => {
    expect(problemsOf(yaml, { kinds: allKinds }).join("\n")).toContain(message);
  });

  it("two vendors cannot have one native prefix", () => {
    const second =
      "  b: { kind: openai-compatible, base_url: https://b.example, native_prefix: /p }\nmodels:";
    const yaml = file({ vendor: ", native_prefix: /p" }).replace("models:", second);
    expect(messages(yaml)).toEqual(['vendor "a" already has /p; choose another']);
  });

  it("the errors of a vendor name both its missing address and its missing credential", () => {
    const yaml = file().replace(/ {2}a: .*/, "  a: { preset: azure-openai }");
    expect(messages(yaml)).toEqual([
      "base_url is missing: add its address, such as base_url: https://api.example.com/v1",
      'api_key is missing: add api_key: "${env:NAME}" and set that environment variable',
    ]);
  });
});

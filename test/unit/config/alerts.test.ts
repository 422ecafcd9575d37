/** `alerts:` of a configuration. */
import { expect, it } from "vitest";
import { loadText, problemsOf } from "./support.ts";

/** A file with these sections. */
function file(...sections: readonly string[]): string {
  return ["version: 1\nvendors: { demo: { kind: demo } }\nmodels: {}", ...sections].join("\n");
}

it("webhooks may be private and hold a secret; without the section there are none", () => {
  const env = { HOOK: "http://10.0.0.7:9000/services/T0/secret" };
  const section = 'alerts: { webhooks: [{ url: "${env:HOOK}", format: slack }], repeat: 1h }';
  expect(loadText(file(section), { env }).alerts).toEqual({
    email: [],
    webhooks: [{ url: env.HOOK, format: "slack" }],
    repeat: 3_600_000,
  });
  expect(loadText(file("")).alerts).toBeUndefined();
});

it.each([
  ["{ email: [ops@example.com] }", "add smtp:"],
  ['{ email: ["ops at example"] }', "is not an e-mail address"],
  ['{ webhooks: [{ url: "${env:HOOK}" }] }', "https:// or http://"],
  ["{ repeat: 10s }", "at least 1m"],
])("alerts %s is refused with what to do, and shows no secret", (section, fix) => {
  const [problem = ""] = problemsOf(file(`alerts: ${section}`), { env: { HOOK: "slack:hunter2" } });
  expect(problem).toContain(fix);
  expect(problem).not.toContain("hunter2");
});

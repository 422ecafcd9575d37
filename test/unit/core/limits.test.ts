/** `limits:` of a configuration. */
import { expect, it } from "vitest";
import { loadText, problemsOf } from "../config/support.ts";

function file(section: string): string {
  return `version: 1\nvendors: { demo: { kind: demo } }\nmodels: {}\n${section}`;
}

it("keys, accounts and models have the limits that are given, and none by default", () => {
  const none = { key: undefined, account: undefined, model: undefined };
  expect(loadText(file("")).limits).toEqual(none);
  expect(loadText(file("limits: { key: { rpm: 600, concurrency: 5 }, model: {} }")).limits).toEqual(
    {
      ...none,
      key: { rpm: 600, tpm: undefined, concurrency: 5 },
    },
  );
});

it("calls wait for room as long as is given", () => {
  expect(loadText(file("limits: { wait: 5s }")).limits.waitMs).toBe(5_000);
});

it.each([
  ["{ wait: 31s }", "limits.wait: must be at most 30s"],
  ["{ wait: 5 }", "limits.wait: must be a whole number with its unit"],
  ["{ key: { rpm: 0 } }", "limits.key.rpm"],
  ["{ account: { tpm: 2147483648 } }", "limits.account.tpm"],
  ["{ model: { rps: 5 } }", "limits.model.rps"],
])("the limits %s are refused with their path", (section, path) => {
  expect(problemsOf(file(`limits: ${section}`))[0]).toContain(path);
});

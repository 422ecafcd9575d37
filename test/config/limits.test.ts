/** `limits:` of a configuration. */
import { expect, it } from "vitest";
import { loadText, problemsOf } from "./support.ts";

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

it.each([
  ["{ key: { rpm: 0 } }", "limits.key.rpm"],
  ["{ account: { tpm: 2147483648 } }", "limits.account.tpm"],
  ["{ model: { rps: 5 } }", "limits.model.rps"],
])("%s is refused with its path", (section, path) => {
  expect(problemsOf(file(`limits: ${section}`))[0]).toContain(path);
});

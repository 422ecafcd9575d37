/** Whatever is deprecated says since when, until when, and what to use instead. */
import { expect, test } from "vitest";
import { readContract } from "../../src/contract/contract.ts";
import { deprecationOf, routeDeprecation } from "../../src/contract/deprecation.ts";
import { getOption } from "@bufbuild/protobuf";
import { route } from "../../gen/uas/http/v1/http_pb.ts";
import { buildContract } from "../unit/contract/edited-contract.ts";

const { files } = readContract(buildContract());
const methods = files.flatMap(({ services }) => services).flatMap((service) => service.methods);
const messages = files.flatMap((file) => file.messages);
const values = files.flatMap((file) => file.enums).flatMap((each) => each.values);
const elements = [...methods, ...messages.flatMap(({ fields }) => fields), ...values];

test("`deprecated = true` and an announcement go together", () => {
  expect(methods.length).toBeGreaterThan(50);
  const half = elements.filter((each) => each.deprecated !== (deprecationOf(each) !== undefined));
  expect(half.map(String)).toEqual([]);
});

test("an announcement names its version, its days and what to use instead", () => {
  const routes = methods.flatMap((method) =>
    getOption(method, route).map((each) => routeDeprecation(method, each)),
  );
  for (const announced of [...elements.map(deprecationOf), ...routes]) {
    if (announced === undefined) continue;
    const { since, sinceDate, sunsetDate, replacement } = announced;
    expect(since).toMatch(/^\d+\.\d+\.\d+$/);
    for (const day of [sinceDate, sunsetDate]) {
      expect(new Date(day).toISOString().slice(0, 10)).toBe(day);
    }
    expect(sunsetDate > sinceDate).toBe(true);
    expect(replacement).toMatch(/^[a-z].*[^.]$/);
  }
});

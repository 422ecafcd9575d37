import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ErrorCodeSchema } from "../../gen/uas/error/v1/error_pb.ts";
import { errorMeanings } from "../../src/core/errors.ts";

/** R-ERR-2: the documented codes of each status. Also what README and clients rely on. */
const documented = [
  "400 invalid_request",
  "401 invalid_request",
  "402 insufficient_balance",
  "403 access_denied",
  "404 model_not_found",
  "404 task_not_found",
  "404 not_found",
  "405 method_not_allowed",
  "409 task_not_cancellable",
  "413 request_too_large",
  "415 unsupported_media_type",
  "422 idempotency_key_reused",
  "429 rate_limit_exceeded",
  "429 queue_full",
  "500 internal_error",
  "502 upstream_error",
  "503 service_unavailable",
  "503 upstream_overloaded",
  "504 upstream_timeout",
  "400 content_rejected",
  "400 invalid_parameters",
  "500 upstream_submit_unknown",
  "504 task_timeout",
  "502 result_unavailable",
  "409 idempotency_key_in_use",
  "409 conflict",
];

/** R-ERR-1: the `type` of the first body shape, by status. */
const types: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "invalid_request_error",
  402: "insufficient_balance",
  403: "access_denied",
  404: "invalid_request_error",
  405: "invalid_request_error",
  409: "invalid_request_error",
  413: "invalid_request_error",
  415: "invalid_request_error",
  422: "invalid_request_error",
  429: "rate_limit_error",
  500: "api_error",
  502: "api_error",
  503: "api_error",
  504: "api_error",
};

const source = readFileSync(
  join(import.meta.dirname, "../../proto/uas/error/v1/error.proto"),
  "utf8",
);

/** The comment above an enum value, as one line. */
function commentOf(name: string): string {
  const lines = source
    .slice(0, source.indexOf(`  ${name} = `))
    .trimEnd()
    .split("\n");
  const start = lines.findLastIndex((line) => !line.trim().startsWith("//")) + 1;
  return lines
    .slice(start)
    .map((line) => line.trim().replace("// ", ""))
    .join(" ");
}

test("R-ERR-2: the codes and statuses of the table are exactly the documented ones", () => {
  const meanings = Object.values(errorMeanings);
  expect(meanings.map(({ status, word }) => `${status} ${word}`)).toEqual(documented);
});

test("R-ERR-2: every code of the contract but UNSPECIFIED has a meaning", () => {
  const numbers = ErrorCodeSchema.values.map(({ number }) => number).filter((number) => number > 0);
  expect(Object.keys(errorMeanings).map(Number)).toEqual(numbers);
});

test("R-ERR-1: the type follows from the status", () => {
  for (const { status, type } of Object.values(errorMeanings)) expect(type).toBe(types[status]);
});

test("the contract's names and comments say the same word and status", () => {
  const meanings = new Map(Object.entries(errorMeanings).map(([code, row]) => [Number(code), row]));
  for (const { name, number } of ErrorCodeSchema.values) {
    const meaning = meanings.get(number);
    if (!meaning) continue;
    const word = name.replace("ERROR_CODE_", "").toLowerCase();
    expect(commentOf(name)).toMatch(
      word === meaning.word
        ? new RegExp(`^${meaning.status}: `)
        : new RegExp(`^${meaning.status}, documented as \`${meaning.word}\`: `),
    );
  }
});

test("the source of a failure fits its status: below 500 the client, but for the vendor's 429", () => {
  for (const { status, source: fault, word } of Object.values(errorMeanings)) {
    if (word === "rate_limit_exceeded") expect(fault).toBe("upstream");
    else expect(fault === "client").toBe(status < 500);
  }
});

import { expect, test } from "vitest";
import { compareContracts } from "../../../src/contract/compare.ts";
import { readContract } from "../../../src/contract/contract.ts";
import { describeChanges } from "../../../src/contract/describe.ts";
import { buildContract, type Edit } from "./edited-contract.ts";

const current = readContract(buildContract());

function sectionsAfter(edits: Edit | Edit[]): Record<string, readonly string[]> {
  const changed = readContract(buildContract([edits].flat()));
  const sections = describeChanges(compareContracts(current, changed));
  return Object.fromEntries(sections.map(({ heading, lines }) => [heading, lines]));
}

const key = "key/v1/key.proto";
const imported = 'import "uas/validate/v1/validate.proto";';
/** Announcements are options that this file does not use yet. */
const importHttp = {
  file: key,
  from: imported,
  to: `import "uas/http/v1/http.proto";\n${imported}`,
};

test.each<[what: string, heading: string, edits: Edit | Edit[], line: string]>([
  [
    "a REST path that moves",
    "Breaking",
    {
      file: "task/v1/task_service.proto",
      from: '"/api/ai/tasks/{task_id}/cancel"',
      to: '"/api/ai/tasks/{task_id}/stop"',
    },
    "Removed: REST path `POST /api/ai/tasks/{task_id}/cancel`. REST: requests get 404; Docs: the list of REST paths.",
  ],
  [
    "an access that fewer callers have",
    "Breaking",
    { file: "key/v1/key_service.proto", from: "= ACCESS_SESSION", to: "= ACCESS_OPERATOR" },
    "access from `SESSION` to `OPERATOR`. SDKs: some callers get PERMISSION_DENIED",
  ],
  [
    "an access that more callers have",
    "Changed",
    { file: "key/v1/key_service.proto", from: "= ACCESS_SESSION", to: "= ACCESS_CUSTOMER" },
    "access from `SESSION` to `CUSTOMER`. Docs: the reference, and who may call it.",
  ],
  [
    "a rule that refuses more",
    "Breaking",
    { file: key, from: "max_chars: 200", to: "max_chars: 100" },
    "rule max_chars from `200` to `100`.",
  ],
  [
    "a rule that refuses less",
    "Changed",
    { file: key, from: "max_chars: 200", to: "max_chars: 300" },
    "SDKs: more requests are accepted",
  ],
  [
    "a field that is gone",
    "Breaking",
    { file: key, from: "string masked = 4;", to: "reserved 4;" },
    "Removed: field `uas.key.v1.Key.masked`. REST: requests or replies that worked may fail at GET /v1/key; SDKs: code that uses it does not compile",
  ],
  [
    "a field of another type",
    "Breaking",
    { file: key, from: "bool can_reveal = 13;", to: "int32 can_reveal = 13;" },
    "Changed: field `uas.key.v1.Key.can_reveal`, type from `bool` to `int32`.",
  ],
  [
    "a new field",
    "Added",
    {
      file: key,
      from: "bool can_reveal = 13;",
      to: "bool can_reveal = 13;\n// New.\nbool x = 90;",
    },
    "Added: field `uas.key.v1.Key.x` (type `bool`). REST: JSON of GET /v1/key; SDKs: older clients ignore it; generate clients again to use it; Docs: the reference.",
  ],
  [
    "a new field that requests must have",
    "Breaking",
    {
      file: "task/v1/task_service.proto",
      from: "message SubmitTaskRequest {",
      to: "message SubmitTaskRequest {\n// New.\nstring x = 90 [(uas.validate.v1.field).required = true];",
    },
    "SDKs: requests without it are refused",
  ],
  [
    "a new error code",
    "Added",
    {
      file: "error/v1/error.proto",
      from: "ERROR_CODE_UNSPECIFIED = 0;",
      to: "ERROR_CODE_UNSPECIFIED = 0;\n// New.\nERROR_CODE_X = 90;",
    },
    "Added: enum value `uas.error.v1.ErrorCode.ERROR_CODE_X`. REST: an error code of every path; SDKs: older clients see an unknown value; Docs: docs/errors.md.",
  ],
  [
    "another package name for a language",
    "Breaking",
    [key, "key/v1/key_service.proto"].map((file) => {
      return { file, from: '"com.uas.key.v1"', to: '"com.keys"' };
    }),
    "Changed: package `uas.key.v1`, name in Java",
  ],
  [
    "an announced removal",
    "Deprecated",
    [
      importHttp,
      {
        file: key,
        from: "string masked = 4;",
        to: 'string masked = 4 [deprecated = true, (uas.http.v1.field_deprecation) = {since: "0.3.0" since_date: "2027-01-31" sunset_date: "2027-07-31" replacement: "use name"}];',
      },
    ],
    "Deprecated: field `uas.key.v1.Key.masked` (announced in 0.3.0, served until 2027-07-31: use name).",
  ],
  [
    "a comment",
    "Comments",
    { file: key, from: "// An API key, without its secret.", to: "// A key." },
    "`uas/key/v1/key.proto`: `Key`. Docs: the reference.",
  ],
])("%s is listed as %s, with its effects", (_what, heading, edits, line) => {
  expect(sectionsAfter(edits)[heading]?.join("\n")).toContain(line);
});

test("a contract has no changes from itself", () => {
  expect(compareContracts(current, current)).toEqual([]);
});

test("an RPC comes and goes as one line, without its request and response", () => {
  const rpc =
    "// New.\nrpc Ping(PingRequest) returns (PingResponse) {\noption (uas.http.v1.access) = ACCESS_PUBLIC;\n}\n";
  const changed = readContract(
    buildContract([
      {
        file: "key/v1/key_service.proto",
        from: "service KeyService {",
        to: `// New.\nmessage PingRequest {}\n// New.\nmessage PingResponse {\n// New.\nstring x = 1;\n}\n// Keys.\nservice KeyService {\n${rpc}`,
      },
    ]),
  );
  const lines = (changes: ReturnType<typeof compareContracts>): string[] =>
    changes
      .filter(({ action }) => action !== "described")
      .map(({ action, element }) => `${action} ${element.name}`);
  const name = "uas.key.v1.KeyService.Ping";
  expect(lines(compareContracts(current, changed))).toEqual([`added ${name}`]);
  expect(lines(compareContracts(changed, current))).toEqual([`removed ${name}`]);
});

import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { readContract } from "../../../src/contract/contract.ts";
import { findBreakage } from "../../../tools/contract/removal.ts";
import { buildContract, type Edit } from "./edited-contract.ts";

const notice =
  'since: "0.3.0" since_date: "2027-01-31" sunset_date: "2027-07-31" replacement: "use another"';

const http = 'import "uas/http/v1/http.proto";';
const service = "key/v1/key_service.proto";
const key = "key/v1/key.proto";

/** The RPC and the field, as they are before their removal. */
const rpc = (options: string): string => `service KeyService {
  // An RPC.
  rpc Ping(PingRequest) returns (PingResponse) {
    option (uas.http.v1.access) = ACCESS_PUBLIC;
    option (uas.http.v1.route) = {method: "GET" path: "/v1/ping" dialect: DIALECT_PLATFORM};
    ${options}
  }
`;
const messages = `// A request.
message PingRequest {}
// A response.
message PingResponse {}
// Keys.
service KeyService {`;
const field = (options: string): string =>
  `message Key {\n  // A number.\n  optional int32 x = 90${options};`;

function released(rpcOptions: string, fieldOptions: string) {
  const edits: Edit[] = [
    { file: service, from: "service KeyService {", to: rpc(rpcOptions) },
    { file: service, from: "service KeyService {", to: messages },
    { file: key, from: 'import "uas/validate', to: `${http}\nimport "uas/validate` },
    { file: key, from: "message Key {", to: field(fieldOptions) },
  ];
  return fromBinary(FileDescriptorSetSchema, buildContract(edits));
}

const announced = released(
  `option deprecated = true;\n    option (uas.http.v1.deprecation) = {${notice}};`,
  ` [deprecated = true, (uas.http.v1.field_deprecation) = {${notice}}]`,
);
const reserving = (what: string): ReturnType<typeof readContract> =>
  readContract(buildContract([{ file: key, from: "message Key {", to: `message Key {\n${what}` }]));
const removed = reserving('reserved 90;\nreserved "x";');

/** The names of what breaks. */
function breaking(
  baseline: typeof announced,
  newer: typeof removed,
  releases: readonly string[],
  today = "2027-08-01",
): string[] {
  return findBreakage(baseline, newer, { releases, today }).breaking.map(
    ({ element }) => element.name,
  );
}

const all = ["GET /v1/ping", "uas.key.v1.KeyService.Ping", "uas.key.v1.Key.x"];

test("parts that were announced in two minor versions may be removed after their sunset", () => {
  expect(breaking(announced, removed, ["0.4.1", "0.4.0", "0.3.0"])).toEqual([]);
});

test("buf compares with a contract that still has what was not removed in time, and nothing else", () => {
  const options = { releases: ["0.4.0", "0.3.0"], today: "2027-08-01" };
  const { released: rest } = findBreakage(announced, removed, options);
  const names = rest.file.flatMap(({ messageType, service: services }) => [
    ...messageType.map(({ name }) => name),
    ...services.flatMap(({ method }) => method.map(({ name }) => name)),
  ]);
  expect(names).toContain("CreateKeyRequest");
  expect(names.filter((name) => name.startsWith("Ping"))).toEqual([]);
});

test.each([
  ["one minor version had the notice", ["0.3.1", "0.3.0"], "2027-08-01"],
  ["the sunset is to come", ["0.4.0", "0.3.0"], "2027-07-30"],
])("removing them breaks clients if only %s", (_what, releases, today) => {
  expect(breaking(announced, removed, releases, today)).toEqual(all);
});

test("removing a field breaks clients if its number and name are not reserved", () => {
  const releases = ["0.4.0", "0.3.0"];
  expect(breaking(announced, reserving("reserved 90;"), releases)).toEqual(["uas.key.v1.Key.x"]);
});

test("removing parts without an announcement breaks clients, whatever the versions", () => {
  expect(breaking(released("", ""), removed, ["9.1.0", "9.0.0"])).toEqual(all);
});

import { expect, it } from "vitest";
import { loadText } from "./support.ts";

const env = { ID: "id-1", SECRET: "secret-1" };

/** A file with this section at its end. */
function storageOf(section: string) {
  return loadText(`version: 1\nvendors: { demo: { kind: demo } }\nmodels: {}\n${section}`, { env })
    .storage;
}

it("result files are kept in the data folder by default", () => {
  expect(storageOf("")).toEqual({ kind: "local" });
  expect(storageOf("storage: { kind: local }")).toEqual({ kind: "local" });
});

const needed = `storage:
  kind: s3
  region: eu-central-1
  bucket: results.example
  access_key_id: "\${env:ID}"
  secret_access_key: "\${env:SECRET}"
`;

it("result files are kept in a bucket of Amazon or of another server where configured", () => {
  const bucket = {
    kind: "s3",
    endpoint: undefined,
    region: "eu-central-1",
    bucket: "results.example",
    accessKeyId: env.ID,
    secretAccessKey: env.SECRET,
    forcePathStyle: false,
  };
  expect(storageOf(needed)).toEqual(bucket);
  const other = `${needed}  endpoint: http://127.0.0.1:9000/\n  force_path_style: true\n`;
  const expected = { ...bucket, endpoint: "http://127.0.0.1:9000", forcePathStyle: true };
  expect(storageOf(other)).toEqual(expected);
});

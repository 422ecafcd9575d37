/** Reads `storage:` of a configuration: where result files are kept. */
import type { S3StorageConfig, StorageConfig } from "./config.ts";
import { type Entry, type Reader, fields, report, required } from "./reader.ts";
import { baseUrl, flag, secret, shown, text, word } from "./values.ts";

const s3Keys = [
  "endpoint",
  "region",
  "bucket",
  "access_key_id",
  "secret_access_key",
  "force_path_style",
] as const;

/** Reads the section; without one, files are kept in the data folder. */
export function readStorage(reader: Reader, entry: Entry | undefined): StorageConfig {
  if (entry === undefined) return { kind: "local" };
  const given = fields(reader, entry, ["kind", ...s3Keys]);
  const fix = "name one of local, s3";
  const kindEntry = required(reader, entry, { from: given, name: "kind", fix });
  const kind = kindEntry && word(reader, kindEntry, ["local", "s3"]);
  if (kind === "s3") return readS3(reader, entry, given);
  for (const name of kind === "local" ? s3Keys : []) {
    const extra = given[name];
    if (extra !== undefined) report(reader, extra, "only kind s3 has it; remove it");
  }
  return { kind: "local" };
}

type Given = ReturnType<typeof fields<"kind" | (typeof s3Keys)[number]>>;

function readS3(reader: Reader, entry: Entry, given: Given): S3StorageConfig {
  const need = (name: (typeof s3Keys)[number], fix: string): Entry | undefined =>
    required(reader, entry, { from: given, name, fix });
  const region = need("region", "add the bucket's region, such as eu-central-1");
  const bucket = need("bucket", "add the name of the bucket");
  const keyFix = 'add access_key_id: "${env:NAME}" and set that environment variable';
  const accessKeyId = need("access_key_id", keyFix);
  const secretFix = 'add secret_access_key: "${env:NAME}" and set that environment variable';
  const secretAccessKey = need("secret_access_key", secretFix);
  return {
    kind: "s3",
    endpoint: given.endpoint && baseUrl(reader, given.endpoint),
    region: (region && named(reader, region, regionForm)) ?? "",
    bucket: (bucket && named(reader, bucket, bucketForm)) ?? "",
    accessKeyId: (accessKeyId && secret(reader, accessKeyId)) ?? "",
    secretAccessKey: (secretAccessKey && secret(reader, secretAccessKey)) ?? "",
    forcePathStyle: (given.force_path_style && flag(reader, given.force_path_style)) ?? false,
  };
}

const regionForm = {
  is: /^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/,
  told: "letters, digits and dashes, such as eu-central-1",
};

const bucketForm = {
  is: /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
  told: "3 to 63 lower-case letters, digits, dots and dashes",
};

function named(
  reader: Reader,
  entry: Entry,
  { is, told }: { readonly is: RegExp; readonly told: string },
): string | undefined {
  const written = text(reader, entry, 100);
  if (written === undefined || is.test(written)) return written;
  report(reader, entry, `${shown(written)} is no name: it has ${told}`);
  return undefined;
}

/** `storage:` of a configuration: if result files are kept. */
import type { z } from "zod";
import type { Parsed } from "./address.ts";
import type { ReferenceSource } from "./references.ts";
import { address, flag, quote, secret, secretFix, text, word } from "./scalars.ts";
import { allAbsent, chooseBy, section } from "./schema.ts";

/** Storage of result files. */
export type StorageConfig = z.output<ReturnType<typeof storageSchema>>;

/** A bucket of S3, or of a server with the same interface. */
export type S3StorageConfig = z.output<ReturnType<typeof s3Schema>>;

/** The schema of the section. Without the section, files are kept in the data folder. */
export function storageSchema(references: ReferenceSource) {
  const kinds = { local: () => localSchema, s3: () => s3Schema(references) };
  return chooseBy("kind", kinds, "name one of local, s3");
}

const s3Keys = [
  "endpoint",
  "region",
  "bucket",
  "access_key_id",
  "secret_access_key",
  "force_path_style",
] as const;

const localSchema = section(
  {
    kind: word(["local"]),
    ...allAbsent(s3Keys, "only kind s3 has it; remove it"),
  },
  { about: { kind: "The data folder, or a bucket." } },
);

function s3Schema(references: ReferenceSource) {
  return section(
    {
      kind: word(["s3"]),
      /** Its address; `undefined`: Amazon's for the region. */
      endpoint: address(references).optional(),
      region: name(references, {
        form: /^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/,
        rule: "letters, digits and dashes, such as eu-central-1",
        fix: "add the bucket's region, such as eu-central-1",
      }),
      bucket: name(references, {
        form: /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
        rule: "3 to 63 lower-case letters, digits, dots and dashes",
        fix: "add the name of the bucket",
      }),
      /** Never logged; the same holds for the next key. */
      access_key_id: secret(references, secretFix("access_key_id")),
      secret_access_key: secret(references, secretFix("secret_access_key")),
      /** Whether the bucket is part of the path instead of the host name. */
      force_path_style: flag().default(false),
    },
    { about: s3About },
  );
}

const s3About = {
  kind: "The data folder, or a bucket.",
  endpoint: "`s3`: http or https address of a server that speaks S3. Default: Amazon's.",
  region: "`s3`: the region of the bucket.",
  bucket: "`s3`: the name of an existing bucket.",
  access_key_id: "`s3`: the credential. It must allow to get, put and delete objects.",
  secret_access_key: "`s3`: its secret.",
  force_path_style:
    "`s3`: whether the bucket is part of the path; most servers other than Amazon's need it.",
};

function name(
  references: ReferenceSource,
  { form, rule, fix }: { readonly form: RegExp; readonly rule: string; readonly fix: string },
) {
  const parse = (value: string): Parsed<string> =>
    form.test(value) ? { value } : { problem: `${quote(value)} is not valid: use ${rule}` };
  return text(references, 100, { fix, parse });
}

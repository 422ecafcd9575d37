import type { Migration } from "../migrate.ts";

/** Adds the credentials of the operator's own services. */
export const serviceCredentials0009: Migration = {
  name: "0009-service-credentials",
  compatibleFrom: "0001-baseline",
  statements: () => [
    `create table service_credential (
      name text not null,
      digest bytea not null,
      masked text not null,
      permissions text[] not null,
      is_disabled boolean not null default false,
      create_time timestamptz not null default now(),
      expire_time timestamptz null,
      previous_digest bytea null,
      previous_expire_time timestamptz null,
      constraint service_credential_pkey primary key (name),
      constraint service_credential_digest_unique unique (digest),
      constraint service_credential_previous_digest_unique unique (previous_digest)
    )`,
  ],
};

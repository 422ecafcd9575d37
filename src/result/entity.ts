/** The tables of result files. */
import { defineEntity, p } from "@mikro-orm/core";

/**
 * Bytes that are stored once, by their SHA-256. `loose`: a token that referred to them was removed
 * since the last scan.
 */
export const ResultBlobEntity = defineEntity({
  name: "ResultBlobEntity",
  tableName: "result_blob",
  properties: {
    storage: p.text().primary(),
    sha256: p.blob().primary(),
    bytes: p.bigint(),
    loose: p.boolean().defaultRaw("false"),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
  },
  indexes: [{ name: "result_blob_loose_index", properties: ["storage", "sha256"], where: "loose" }],
  checks: [
    { name: "result_blob_bytes_check", expression: "bytes >= 0" },
    { name: "result_blob_sha256_check", expression: "octet_length(sha256) = 32" },
  ],
});

/** A token of an address, and its bytes; null once it has expired. */
export const ResultFileEntity = defineEntity({
  name: "ResultFileEntity",
  tableName: "result_file",
  properties: {
    token: p.text().primary(),
    storage: p.text().nullable(),
    sha256: p.blob().nullable(),
    contentType: p.text(),
    extension: p.text(),
    accountId: p.uuid(),
    taskId: p.uuid(),
    ready: p.boolean().defaultRaw("false"),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    expireTime: p.datetime().columnType("timestamptz"),
  },
  indexes: [
    {
      name: "result_file_blob_index",
      properties: ["storage", "sha256"],
      where: "sha256 is not null",
    },
    { name: "result_file_expire_time_index", properties: ["expireTime"] },
  ],
  checks: [{ name: "result_file_blob_check", expression: "(storage is null) = (sha256 is null)" }],
});

/** The tables of result files. */
export const resultEntities = [ResultBlobEntity, ResultFileEntity] as const;

/** Tables of the native room. */
import { defineEntity, p } from "@mikro-orm/core";

/**
 * The owner of a vendor's object: all customers share the operator's account there. `name`: with
 * its collection, such as `files/abc`. `credential`: the name of the vendor's credential that
 * created it; empty for the only or first one. The other members describe prompt caches: their
 * model here, their stored tokens, their expiry, the time up to which their storage was charged,
 * and the vendor's last description.
 */
export const NativeObjectEntity = defineEntity({
  name: "NativeObjectEntity",
  tableName: "native_object",
  properties: {
    vendor: p.text().primary(),
    name: p.text().primary(),
    accountId: p.uuid(),
    credential: p.text().default(""),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    model: p.text().nullable(),
    tokens: p.integer().nullable(),
    expireTime: p.datetime().columnType("timestamptz").nullable(),
    paidTime: p.datetime().columnType("timestamptz").nullable(),
    body: p.blob().nullable().lazy(),
  },
  indexes: [
    { name: "native_object_create_time_index", properties: ["createTime"] },
    {
      name: "native_object_expire_time_index",
      properties: ["expireTime"],
      where: "expire_time is not null",
    },
    {
      name: "native_object_cache_index",
      properties: ["accountId", "vendor", "name"],
      where: "expire_time is not null",
    },
  ],
});

/**
 * A job that was submitted in a vendor's form, with the data that its task does not have.
 * `vendorId`: null until the vendor has answered. `body`: the vendor's last reply; null if it is
 * too long to store.
 */
export const NativeJobEntity = defineEntity({
  name: "NativeJobEntity",
  tableName: "native_job",
  properties: {
    taskId: p.uuid().primary(),
    accountId: p.uuid(),
    vendor: p.text(),
    word: p.text(),
    vendorId: p.text().nullable(),
    callbackId: p.text().nullable(),
    wantsProgress: p.boolean().default(true),
    status: p.text().default(""),
    body: p.blob().nullable().lazy(),
    refreshTime: p.datetime().columnType("timestamptz").nullable(),
  },
  uniques: [{ name: "native_job_vendor_vendor_id_unique", properties: ["vendor", "vendorId"] }],
  indexes: [
    {
      name: "native_job_account_id_vendor_word_task_id_index",
      properties: ["accountId", "vendor", "word", "taskId"],
    },
  ],
});

/** Uploads of an account to vendors on a day (UTC): objects, and bytes of its requests. */
export const NativeUploadEntity = defineEntity({
  name: "NativeUploadEntity",
  tableName: "native_upload",
  properties: {
    accountId: p.uuid().primary(),
    day: p.date().primary(),
    objects: p.integer(),
    bytes: p.bigint(),
  },
  indexes: [{ name: "native_upload_day_index", properties: ["day"] }],
});

/** The tables of the native room. */
export const nativeEntities = [NativeObjectEntity, NativeJobEntity, NativeUploadEntity] as const;

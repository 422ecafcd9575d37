/**
 * Stores result files in a bucket of S3 or a compatible server. Uses Amazon's client, with which
 * such servers are tested; the smallest alternative is 0.3 MB instead of 23, but has a single
 * maintainer. The client is loaded at its first use, which saves 38 MB of memory in an installation
 * with a local folder.
 */
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import type { S3Client } from "@aws-sdk/client-s3";
import type { S3StorageConfig } from "../config/config.ts";
import { resultReadersMax } from "../core/limits.ts";
import type { ObjectStore } from "../core/object-store.ts";
import type { ResultStorage } from "./storage.ts";

/** Maximum time for a connection, and for a request without an answer. */
const connectMs = 5_000;
const answerMs = 30_000;

/**
 * The size of an upload's parts in bytes, and the number in flight: together the memory of an
 * upload. A failed part is sent again, not the file.
 */
const partBytes = 8 * 1024 * 1024;
const partsAtOnce = 2;

/** Creates a store of objects named `results/{first two digits}/{hash}`. */
export function createS3Storage(config: S3StorageConfig): ResultStorage {
  let loading: Promise<Loaded> | undefined;
  const load = (): Promise<Loaded> => (loading ??= loadClient(config));
  const at = (sha256: string): ObjectName => ({
    Bucket: config.bucket,
    Key: `results/${sha256.slice(0, 2)}/${sha256}`,
  });
  return {
    kind: "s3",
    async check() {
      const { client, s3 } = await load();
      // A write proves the permission that is needed: a request about the bucket needs another one.
      const probe = { Bucket: config.bucket, Key: "results/.check", Body: Buffer.from("ok") };
      await client.send(new s3.PutObjectCommand(probe));
    },
    async keep({ path, sha256, bytes }, signal) {
      const { client, s3, Upload } = await load();
      // Without the permission to list, S3 returns 403 instead of 404: any failure here leads to an
      // upload.
      const head = client.send(new s3.HeadObjectCommand(at(sha256)), { abortSignal: signal });
      if ((await head.catch(() => undefined))?.ContentLength === bytes) return;
      await uploadFile({ client, Upload }, at(sha256), { path, signal });
    },
    async open(sha256, { start, end }) {
      const { client, s3 } = await load();
      const get = new s3.GetObjectCommand({ ...at(sha256), Range: `bytes=${start}-${end}` });
      const reply = await client.send(get).catch(unlessMissing);
      // In Node.js the SDK's body is a Readable.
      return reply?.Body as Readable | undefined;
    },
    async remove(sha256) {
      const { client, s3 } = await load();
      await client.send(new s3.DeleteObjectCommand(at(sha256))).catch(unlessMissing);
    },
    close() {
      void loading?.then(({ client }) => client.destroy()).catch(() => {});
      loading = undefined;
    },
  };
}

/** Creates a store of objects by their names, in the same bucket as result files. */
export function createS3Objects(config: S3StorageConfig): ObjectStore {
  let loading: Promise<Loaded> | undefined;
  const load = (): Promise<Loaded> => (loading ??= loadClient(config));
  const at = (name: string): ObjectName => ({ Bucket: config.bucket, Key: name });
  return {
    async put(name, path, signal) {
      await uploadFile(await load(), at(name), { path, signal });
    },
    async open(name) {
      const { client, s3 } = await load();
      const reply = await client.send(new s3.GetObjectCommand(at(name))).catch(unlessMissing);
      return reply?.Body as Readable | undefined;
    },
    close() {
      void loading?.then(({ client }) => client.destroy()).catch(() => {});
      loading = undefined;
    },
  };
}

interface ObjectName {
  readonly Bucket: string;
  readonly Key: string;
}

async function uploadFile(
  { client, Upload }: Pick<Loaded, "client" | "Upload">,
  at: ObjectName,
  { path, signal }: { readonly path: string; readonly signal: AbortSignal },
): Promise<void> {
  const upload = new Upload({
    client,
    params: { ...at, Body: createReadStream(path, { highWaterMark: 1024 * 1024 }) },
    partSize: partBytes,
    queueSize: partsAtOnce,
  });
  const abort = (): void => void upload.abort();
  signal.addEventListener("abort", abort);
  try {
    signal.throwIfAborted();
    await upload.done();
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

interface Loaded {
  readonly client: S3Client;
  readonly s3: typeof import("@aws-sdk/client-s3");
  readonly Upload: typeof import("@aws-sdk/lib-storage")["Upload"];
}

async function loadClient(config: S3StorageConfig): Promise<Loaded> {
  const [s3, { Upload }] = await Promise.all([
    import("@aws-sdk/client-s3"),
    import("@aws-sdk/lib-storage"),
  ]);
  const { accessKeyId, secretAccessKey, endpoint } = config;
  const client = new s3.S3Client({
    region: config.region,
    ...(endpoint !== undefined && { endpoint }),
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: config.forcePathStyle,
    // Many compatible servers lack trailing checksums. Objects are named by their hash anyway.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: {
      connectionTimeout: connectMs,
      requestTimeout: answerMs,
      throwOnRequestTimeout: true,
      // Each slow reader uses a connection; uploads need some in addition.
      httpAgent: { maxSockets: resultReadersMax + 100 },
      httpsAgent: { maxSockets: resultReadersMax + 100 },
    },
  });
  return { client, s3, Upload };
}

function unlessMissing(error: unknown): undefined {
  const name = error instanceof Error ? error.name : "";
  if (name === "NotFound" || name === "NoSuchKey") return undefined;
  throw error;
}

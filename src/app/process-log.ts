import type { Config, Settings } from "../config/config.ts";
import { databasePasswords } from "../core/database-address.ts";
import { createLog, type LogOptions } from "../observe/log.ts";

/** Creates a server's log, which hides the secrets of settings and configuration. */
export function createServerLog(
  { settings, config }: { readonly settings: Settings; readonly config: Config },
  options: Omit<LogOptions, "secrets"> = {},
): ReturnType<typeof createLog> {
  return createLog({ ...options, secrets: secretsOf(settings, config) });
}

function secretsOf(settings: Settings, { vendors, storage, sms }: Config): string[] {
  const { operatorToken, databaseUrl, masterKey } = settings;
  const keys = [...vendors.values()].flatMap(({ apiKey, credentials = [] }) => [
    apiKey,
    ...credentials.map((credential) => credential.apiKey),
  ]);
  const all = [
    masterKey?.toString("base64"),
    operatorToken,
    ...databasePasswords(databaseUrl ?? ""),
    ...keys,
    ...(storage.kind === "s3" ? [storage.accessKeyId, storage.secretAccessKey] : []),
    ...smsSecretsOf(sms),
  ];
  return all.filter((secret) => secret !== undefined);
}

function smsSecretsOf(sms: Config["sms"]): (string | undefined)[] {
  if (sms?.provider === "http") return [sms.token];
  if (sms?.provider === "twilio") return [sms.authToken];
  return sms?.provider === "aliyun" ? [sms.accessKeyId, sms.accessKeySecret] : [];
}

import { tokensOf } from "../config/settings.ts";
import type { Config, Settings } from "../config/config.ts";
import { databasePasswords } from "../core/database-address.ts";
import { createLog, type LogOptions } from "../observe/log.ts";

/** A server's log. */
export interface ServerLog extends Omit<ReturnType<typeof createLog>, "hide"> {
  /** Hides the secrets of a configuration that comes into force, besides all earlier ones. */
  hideSecrets(this: void, config: Config): void;
}

/** Creates a server's log, which hides the secrets of settings and configuration. */
export function createServerLog(
  { settings, config }: { readonly settings: Settings; readonly config: Config },
  options: Omit<LogOptions, "secrets"> = {},
): ServerLog {
  const { hide, ...log } = createLog({ ...options, secrets: secretsOf(settings, config) });
  return { ...log, hideSecrets: (next) => hide(secretsOf(settings, next)) };
}

function secretsOf(settings: Settings, { vendors, storage, sms }: Config): string[] {
  const { operatorToken, databaseUrl, masterKey } = settings;
  const keys = [...vendors.values()].flatMap(({ apiKey, credentials = [] }) => [
    apiKey,
    ...credentials.map((credential) => credential.apiKey),
  ]);
  const all = [
    masterKey?.toString("base64"),
    ...tokensOf(operatorToken),
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

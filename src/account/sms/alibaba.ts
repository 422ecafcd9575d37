/** Sends codes with Alibaba Cloud SMS: RPC `SendSms`, signed with ACS3-HMAC-SHA256. */
import { createHash, createHmac, randomUUID } from "node:crypto";
import type { AliyunSmsConfig } from "../../config/config.ts";
import type { Sms } from "./provider.ts";
import { createSmsPoster, refusedBy } from "./post.ts";

/** Creates the provider. */
export function createAliyunSms(config: AliyunSmsConfig): Sms {
  const { signName, templateCode } = config;
  const poster = createSmsPoster(config.baseUrl);
  return {
    isDevelopment: false,
    async send({ to, code }) {
      const signed = signAliyun(config, {
        host: poster.host,
        path: `${poster.basePath}/`,
        action: "SendSms",
        version: "2017-05-25",
        query: {
          PhoneNumbers: aliyunNumber(to),
          SignName: signName,
          TemplateCode: templateCode,
          TemplateParam: JSON.stringify({ code }),
        },
        date: `${new Date().toISOString().slice(0, 19)}Z`,
        nonce: randomUUID(),
      });
      const answer = await poster.post({ ...signed, body: "" });
      if (answer.body["Code"] !== "OK") throw refusedBy("Aliyun", answer, answer.body["Code"]);
    },
    confirmed() {},
    close: () => poster.close(),
  };
}

/** Numbers of mainland China without country code, others without the plus. */
function aliyunNumber(number: string): string {
  return number.replace(/^\+86(?=1)/, "").replace(/^\+/, "");
}

/** A call to sign. */
interface AliyunCall {
  readonly host: string;
  readonly path: string;
  readonly action: string;
  readonly version: string;
  readonly query: Readonly<Record<string, string>>;
  /** In the form `2023-10-26T10:22:32Z`. */
  readonly date: string;
  readonly nonce: string;
}

/** Signs a call without a body. */
export function signAliyun(
  { accessKeyId, accessKeySecret }: Pick<AliyunSmsConfig, "accessKeyId" | "accessKeySecret">,
  { host, path, action, version, query, date, nonce }: AliyunCall,
): { readonly path: string; readonly headers: Readonly<Record<string, string>> } {
  const queryText = Object.keys(query)
    .toSorted()
    .map((name) => `${encode(name)}=${encode(query[name] ?? "")}`)
    .join("&");
  const signed: Readonly<Record<string, string>> = {
    host,
    "x-acs-action": action,
    "x-acs-content-sha256": sha256(""),
    "x-acs-date": date,
    "x-acs-signature-nonce": nonce,
    "x-acs-version": version,
  };
  const names = Object.keys(signed).join(";");
  const lines = Object.entries(signed).map(([name, value]) => `${name}:${value}\n`);
  const canonical = ["POST", path, queryText, lines.join(""), names, sha256("")].join("\n");
  const signature = createHmac("sha256", accessKeySecret)
    .update(`ACS3-HMAC-SHA256\n${sha256(canonical)}`)
    .digest("hex");
  const authorization = `ACS3-HMAC-SHA256 Credential=${accessKeyId},SignedHeaders=${names},Signature=${signature}`;
  return { path: `${path}?${queryText}`, headers: { ...signed, authorization } };
}

/** Percent-encoding of RFC 3986, which encodes more characters than JavaScript does. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

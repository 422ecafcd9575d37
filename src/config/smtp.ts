/** `smtp:` of a configuration: the mail server that sends alerts. */
import type { z } from "zod";
import type { Parsed } from "./address.ts";
import type { ReferenceSource } from "./references.ts";
import { secret, secretFix, text } from "./scalars.ts";
import { section } from "./schema.ts";

/** The mail server. */
export type SmtpConfig = z.output<ReturnType<typeof smtpSchema>>;

/** The schema of the section. */
export function smtpSchema(references: ReferenceSource) {
  return section(
    {
      /** `smtp://` or `smtps://` with user and password. Never logged. */
      url: secret(references, secretFix("url")).refine((url) => isMailServer(url, references), {
        error: "must hold smtp://user:password@host:port, or smtps:// for TLS from the start",
      }),
      /** The sender of every e-mail. */
      from: text(references, 320, {
        fix: 'add the sender, such as "UAS <no-reply@example.com>"',
        parse: parseSender,
      }),
    },
    { about: smtpKeys },
  );
}

const smtpKeys = {
  url: "A reference to `smtp://user:password@host:port`, or `smtps://` for TLS from the start. With `smtp://`, TLS begins if the server offers it.",
  from: "The sender of every e-mail.",
};

function isMailServer(url: string, { placeholder }: ReferenceSource): boolean {
  if (placeholder !== undefined && url.includes(placeholder)) return true;
  const parsed = URL.parse(url);
  return /^smtps?:$/.test(parsed?.protocol ?? "") && parsed?.hostname !== "";
}

const addressForm = /^[^\s@<>"]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*$/;

function parseSender(value: string): Parsed<string> {
  const address = /^[^<>]*<([^<>]+)>$/.exec(value)?.[1] ?? value;
  if (addressForm.test(address)) return { value };
  return { problem: "must be an e-mail address, such as UAS <no-reply@example.com>" };
}

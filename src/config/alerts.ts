/** `alerts:` of a configuration: who is informed when the installation needs its operator. */
import type { z } from "zod";
import type { Parsed } from "./address.ts";
import type { ConfigDocument } from "./document.ts";
import type { ReferenceSource } from "./references.ts";
import { duration, quote, text, word } from "./scalars.ts";
import { list, section } from "./schema.ts";

/** The addresses that are informed. */
export type AlertsConfig = z.output<ReturnType<typeof alertsSchema>>;

/** The schema of the section. */
export function alertsSchema(references: ReferenceSource) {
  const webhook = section(
    {
      /** `http://` or `https://`; it may be private. It may contain a secret: never logged. */
      url: text(references, 2_000, {
        fix: "add its address",
        parse: (url) => parseUrl(url, references),
      }),
      format: word(["json", "slack"]).default("json"),
    },
    { about: webhookKeys },
  );
  return section(
    {
      email: list(text(references, 320, { parse: parseAddress }), "e-mail addresses").default([]),
      webhooks: list(webhook, "webhooks").default([]),
      repeat: duration().default(repeatMsDefault),
    },
    { about: alertsKeys },
  );
}

/** Often enough that an alert is not forgotten, and seldom enough that it is not ignored. */
const repeatMsDefault = 6 * 60 * 60 * 1_000;

/** An alert that repeats more often is ignored. */
const repeatMsMin = 60_000;

const alertsKeys = {
  email: "The addresses that get an e-mail. It needs `smtp`.",
  webhooks: "Addresses that get a POST. They may be private.",
  repeat: "The interval at which an alert that lasts is sent again. Default: `6h`.",
};

const webhookKeys = {
  url: "The address, often a reference such as `${env:ALERT_URL}`.",
  format:
    "`json`: all members of the alert. `slack`: one member `text`, as Slack, Mattermost and others read it. Default: `json`.",
};

/** Reports what the schema cannot see: e-mails without a mail server. */
export function checkAlerts(
  document: ConfigDocument,
  { alerts, smtp }: { readonly alerts: AlertsConfig; readonly smtp: object | undefined },
): void {
  if (alerts.email.length > 0 && smtp === undefined) {
    document.error(["alerts", "email"], "e-mails need a mail server: add smtp: with url and from");
  }
  if (alerts.repeat < repeatMsMin) {
    document.error(["alerts", "repeat"], "must be at least 1m, or alerts are ignored");
  }
}

function parseUrl(value: string, { placeholder }: ReferenceSource): Parsed<string> {
  if (placeholder !== undefined && value.includes(placeholder)) return { value };
  const url = URL.parse(value);
  if (url?.protocol === "https:" || url?.protocol === "http:") return { value };
  // The value may contain a secret: it is not repeated.
  return { problem: "must be an address that begins with https:// or http://" };
}

function parseAddress(value: string): Parsed<string> {
  if (/^[^\s@<>",;]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*$/.test(value)) return { value };
  return { problem: `${quote(value)} is not an e-mail address, such as ops@example.com` };
}

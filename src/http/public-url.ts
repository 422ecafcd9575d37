/**
 * Checks URLs that customers name, for webhooks and images, as far as possible without DNS. The
 * addresses behind a name are checked when connecting; see guarded-client.ts.
 */
import { isIP } from "node:net";
import { publicUrlCharsMax } from "../core/limits.ts";
import { isPublicAddress } from "./public-address.ts";

/** An acceptable URL, or the problem with it as a clause that follows the field's name. */
export type PublicUrl = { readonly url: URL } | { readonly problem: string };

/** Ports that the Fetch standard blocks, since services on them can be tricked with HTTP. */
const badPorts: ReadonlySet<number> = new Set([
  0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
  103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
  512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
  995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
  6669, 6679, 6697, 10080,
]);

/** Names that public DNS does not resolve, or that mean this machine or its network. */
const closedNames =
  /(?:^|\.)(?:localhost|local|localdomain|internal|intranet|lan|home|corp|private|home\.arpa|onion)$/;

/** At least two labels, none empty or longer than DNS allows. */
const nameForm = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})+$/;

/** Longest DNS name, in characters. */
const hostCharsMax = 253;

/**
 * Parses a customer's URL: https, a public host, no credentials, no blocked port. Checks follow the
 * URL standard, so `https://2130706433/` is `127.0.0.1`. The fragment is dropped, since it is never
 * sent.
 *
 * @param allowHosts hosts, in lower case, exempt from the host rules. None by default
 */
export function readPublicUrl(text: string, allowHosts: readonly string[] = []): PublicUrl {
  if (text.length > publicUrlCharsMax) {
    return { problem: `must not be longer than ${publicUrlCharsMax} characters` };
  }
  const url = URL.parse(text);
  if (url === null) return { problem: "must be an absolute https address" };
  const problem = problemOf(url, allowHosts);
  if (problem !== undefined) return { problem };
  url.hash = "";
  return { url };
}

function problemOf(url: URL, allowHosts: readonly string[]): string | undefined {
  if (url.protocol !== "https:") return "must begin with https://";
  if (url.username !== "" || url.password !== "") return "must not contain a user or a password";
  if (badPorts.has(Number(url.port || 443)))
    return `must not use port ${url.port}: it is not one for HTTP`;
  return allowHosts.includes(url.hostname) ? undefined : hostProblem(url.hostname);
}

function hostProblem(hostname: string): string | undefined {
  const literal = literalAddress(hostname);
  if (literal !== undefined) {
    return isPublicAddress(literal) ? undefined : "must have a public address";
  }
  if (hostname.length > hostCharsMax) return "must have a host name of at most 253 characters";
  if (hostname.endsWith(".")) return "must have a host name without a dot at its end";
  if (!nameForm.test(hostname) || closedNames.test(hostname)) {
    return "must have a host name on the public internet";
  }
  return undefined;
}

/** The IP address that a URL's host is written as, without brackets; `undefined` for a name. */
export function literalAddress(hostname: string): string | undefined {
  const bare = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
  return isIP(bare) === 0 ? undefined : bare;
}

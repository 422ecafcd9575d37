/** Parses addresses of the environment: listen addresses, trusted proxies, the public origin. */
import { isIP } from "node:net";

/** A parsed value, or what is wrong with it and how to correct it. */
export type Parsed<Value> = { readonly value: Value } | { readonly problem: string };

/** Parses `host:port` or `[::1]:8080`. Port 0: any free one. */
export function parseListen(text: string): Parsed<ListenAddress> {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2] ?? "";
  const port = Number(match?.[3] ?? -1);
  const isHost = match?.[1] === undefined ? /^[\w.-]+$/.test(host) : isIP(host) === 6;
  if (match !== null && isHost && port <= 65_535) return { value: { host, port } };
  if (/^:?\d{1,5}$/.test(text)) {
    const written = text.replace(":", "");
    return { problem: `names no host: write 127.0.0.1:${written}, or 0.0.0.0:${written} for all` };
  }
  if (isIP(text.replace(/:\d+$/, "")) === 6) {
    return { problem: "write an IPv6 address in brackets, such as [::1]:8080" };
  }
  return { problem: "must be host:port with a port from 0 to 65535, such as 127.0.0.1:8080" };
}

/** Parses an origin: scheme, host and port. One trailing slash is dropped. */
export function parseOrigin(text: string): Parsed<string> {
  const url = URL.parse(text);
  const isWeb = url !== null && (url.protocol === "http:" || url.protocol === "https:");
  if (!isWeb) return { problem: "must be an origin such as https://ai.example.com" };
  const isOrigin = url.href === `${url.origin}/` && !/[?#]/.test(text);
  if (isOrigin) return { value: url.origin };
  return { problem: `must be an origin without path, query or user: write ${url.origin}` };
}

const namedRanges: ReadonlySet<string> = new Set(["loopback", "linklocal", "uniquelocal"]);

/** Parses a comma separated list of addresses, ranges such as `10.0.0.0/8`, and names of ranges. */
export function parseProxies(text: string): Parsed<readonly string[]> {
  const entries = text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  const wrong = entries.find((entry) => !namedRanges.has(entry) && !isRange(entry));
  if (wrong === undefined) return { value: entries };
  const example = "10.0.0.0/8,192.0.2.1 or loopback";
  return {
    problem: `${JSON.stringify(wrong)} is not an address or range: write for example ${example}`,
  };
}

function isRange(entry: string): boolean {
  const [address = "", bits, ...rest] = entry.split("/");
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  if (bits === undefined) return true;
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}

/** A TCP address to listen on. Port 0: any free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

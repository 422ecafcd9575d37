/** Reads the address of a database, which may name several hosts as in libpq. */

/** One address for each host, best first, or what is wrong with it. */
export type DatabaseHosts =
  | { readonly urls: readonly [string, ...string[]] }
  | { readonly problem: string };

/** Scheme; user and password; hosts; the rest. URLs of one host only are what `URL` reads. */
const parts = /^(postgres(?:ql)?:\/\/)((?:[^/?#]*@)?)([^@/?#]*)([^?#]*)(?:\?(.*))?$/i;

const form =
  "must be the address of a PostgreSQL server: write postgresql://user:password@host:5432/database, with commas between several hosts, or unset it for the embedded one";

/** What a client may ask of its server. The gateway writes, so all of these mean the same. */
const writable = new Set(["any", "read-write", "primary"]);

/**
 * Reads `postgresql://user:password@host1:5432,host2:5432/database?target_session_attrs=read-write`, also with the hosts
 * in the parameters `host` and `port`. Each of the addresses has all the other parameters.
 */
export function readDatabaseAddress(text: string): DatabaseHosts {
  const [, scheme = "", login = "", authority = "", path = "", query = ""] = parts.exec(text) ?? [];
  if (scheme === "") return { problem: form };
  const params = new URLSearchParams(query);
  const session = params.get("target_session_attrs") ?? "any";
  if (!writable.has(session)) {
    return {
      problem: `target_session_attrs must be read-write: the gateway writes, and ${session} may lead to a standby`,
    };
  }
  params.delete("target_session_attrs");
  const places = placesOf(authority, params);
  if ("problem" in places) return places;
  if (places.all.length === 1) return isAddress(text) ? { urls: [text] } : { problem: form };
  const urls = places.all.map(({ host, param, port }) => {
    const own = new URLSearchParams(params);
    if (param !== undefined) own.set("host", param);
    if (port !== undefined) own.set("port", port);
    const search = own.size > 0 ? `?${own.toString()}` : "";
    return `${scheme}${login}${host}${path}${search}`;
  });
  const [first, ...others] = urls;
  if (first === undefined || !urls.every(isAddress)) return { problem: form };
  return { urls: [first, ...others] };
}

interface Place {
  /** With its port, as it stands before the path. */
  readonly host: string;
  /** The parameters of its own, where hosts are given in this way. */
  readonly param?: string;
  readonly port?: string;
}

function placesOf(
  authority: string,
  params: URLSearchParams,
): { readonly all: readonly Place[] } | { readonly problem: string } {
  const hosts = params.get("host")?.split(",") ?? [];
  if (hosts.length < 2) return { all: authority.split(",").map((host) => ({ host })) };
  const ports = params.get("port")?.split(",") ?? [];
  if (ports.length > 1 && ports.length !== hosts.length) {
    return {
      problem: `has ${hosts.length} hosts and ${ports.length} ports: give each host its port, or one for all`,
    };
  }
  const all = hosts.map((param, index) => {
    const port = ports[index] ?? ports[0];
    return { host: authority, param, ...(port !== undefined && { port }) };
  });
  return { all };
}

function isAddress(url: string): boolean {
  // Sockets have no host, which `URL` takes in no address with a user.
  const read = URL.parse(url) ?? URL.parse(url.replace("@/", "@socket/"));
  return read !== null;
}

/** The password in an address, as written and decoded; empty where there is none. */
export function databasePasswords(text: string): string[] {
  const read = readDatabaseAddress(text);
  const url = "urls" in read ? read.urls[0] : text;
  const parsed = URL.parse(url) ?? URL.parse(url.replace("@/", "@socket/"));
  const written = [parsed?.password ?? "", parsed?.searchParams.get("password") ?? ""];
  return written.flatMap((password) => [password, decoded(password)]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

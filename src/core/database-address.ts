/** Reads `DATABASE_URL`, the address of a PostgreSQL server. */

const form =
  "must be the address of a PostgreSQL server: write postgresql://user:password@host:5432/database, with special characters of the password percent-encoded, or unset it for the embedded one";

const severalHosts =
  "must name one host: put HAProxy, PgBouncer or your service's own endpoint before the servers, and write its address";

/** Scheme, user and password, then the hosts. */
const authority = /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?([^@/?#]*)/i;

/** The reason why this is not the address of one server; undefined if it is. */
export function databaseAddressProblem(text: string): string | undefined {
  const hosts = authority.exec(text)?.[1];
  if (hosts === undefined) return form;
  const url = parse(text);
  if (hosts.includes(",") || url?.searchParams.get("host")?.includes(",")) return severalHosts;
  return url === null ? form : undefined;
}

/** The password in an address, as written and decoded; empty if there is none. */
export function databasePasswords(text: string): string[] {
  const url = parse(text);
  const written = [url?.password ?? "", url?.searchParams.get("password") ?? ""];
  return written.flatMap((password) => [password, decoded(password)]);
}

function parse(text: string): URL | null {
  // The address of a socket has no host, which `URL` accepts only without a user.
  return URL.parse(text) ?? URL.parse(text.replace("@/", "@socket/"));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Which headers pass, in either direction: those that a vendor's table names, and no others. Pure. */

type Headers = Readonly<Record<string, string>>;

/** Tells whether a header is on a list; `x-goog-upload-*` stands for all that begin so. */
export type HeaderList = (name: string) => boolean;

/** What never passes, whatever a table says: credentials, and what belongs to one connection. */
const never =
  /^(?:authorization|proxy-.*|cookie|set-cookie2?|x-api-key|api-key|x-goog-api-key|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-encoding|content-length|expect|forwarded|x-forwarded-.*|location|server|via|x-request-id|request-id)$/;

/** Makes a list. */
export function headerList(names: readonly string[]): HeaderList {
  const whole = new Set(names.filter((name) => !name.endsWith("*")));
  const starts = names.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  return (name) =>
    !never.test(name) && (whole.has(name) || starts.some((start) => name.startsWith(start)));
}

/** The headers of a list. */
export function passHeaders(headers: Headers, list: HeaderList): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => list(name)));
}

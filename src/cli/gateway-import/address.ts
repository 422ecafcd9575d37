/** Addresses of vendors in other gateways' files. */

/** An address without its secrets, and what was removed from it. */
export interface CleanAddress {
  readonly baseUrl: string;
  /** Empty if nothing was removed. */
  readonly removed: string;
}

/** Removes user, query and fragment. Undefined if it is not an http address. */
export function cleanAddress(text: string): CleanAddress | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  const removed = [
    ...(url.username + url.password === "" ? [] : ["user and password"]),
    ...(url.search === "" ? [] : ["query"]),
    ...(url.hash === "" ? [] : ["fragment"]),
  ];
  const path = url.pathname.replace(/\/+$/, "");
  return { baseUrl: `${url.protocol}//${url.host}${path}`, removed: removed.join(", ") };
}

/** An address that ends in a path. */
export function withPath(baseUrl: string, path: string): string {
  return baseUrl.endsWith(path) ? baseUrl : `${baseUrl}${path}`;
}

/** The address of Azure OpenAI's API, whose deployments other gateways address one by one. */
export function azureAddress(baseUrl: string): string {
  return `${URL.parse(baseUrl)?.origin ?? baseUrl}/openai/v1`;
}

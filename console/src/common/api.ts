/** The address of the API, for the playground and for examples. */

/** Its origin: that of the pages, unless the console has its own host. */
export function apiOrigin(): string {
  const named = document.querySelector<HTMLMetaElement>("meta[name=api-origin]");
  return named?.content ?? location.origin;
}

/** The address of the API, for the playground and for examples. */

/** The origin of the API: the origin of the pages, unless the console has a separate host. */
export function apiOrigin(): string {
  const named = document.querySelector<HTMLMetaElement>("meta[name=api-origin]");
  return named?.content ?? location.origin;
}

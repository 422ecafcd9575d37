/** Reads lists of the contract page by page. */

/** The largest page that the contract gives. */
const pageSizeMax = 1_000;

/** One page to ask for. */
export interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Empty: this is the last. */
  readonly nextPageToken: string;
}

/** The first `limit` items of a list; `Infinity` for all. */
export async function everyPage<Item>(
  limit: number,
  read: (request: PageRequest) => Promise<Page<Item>>,
): Promise<readonly Item[]> {
  const found: Item[] = [];
  let pageToken = "";
  do {
    const pageSize = Math.min(pageSizeMax, limit - found.length);
    const page = await read({ pageSize, pageToken });
    found.push(...page.items.slice(0, pageSize));
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && found.length < limit);
  return found;
}

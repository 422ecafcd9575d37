/** What this version can serve, as the configuration's checks want to know it. */
import type { ServedKinds } from "./config/kinds.ts";
import { type VendorDialectId, vendorDialects } from "./dialect/index.ts";
import { vendorKinds } from "./vendor/index.ts";

/** What this version can serve of each kind of vendor, for the configuration's checks. */
export const servedKinds: ServedKinds = new Map(
  Object.entries(vendorKinds).map(([name, kind]) => [
    name,
    {
      ...kind,
      dialects: kind.dialects.map((dialect) => vendorDialects[dialect as VendorDialectId].word),
    },
  ]),
);

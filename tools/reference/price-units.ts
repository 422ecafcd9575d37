/** The reference of the units of prices. */
import { priceUnits } from "../../src/config/price-units.ts";
import { code, table } from "./table.ts";

/** The page of all units, in the order of a receipt. */
export function priceUnitsPage(): string {
  const rows = priceUnits.map(({ name, per, counts, held, reported }) => [
    code(name),
    per,
    counts,
    held,
    reported,
  ]);
  const body = table(["unit", "price is per", "counts", "held", "vendors report it as"], rows);
  return `# Units of prices

Here you find what each unit of a [price](../money.md#units) counts, what is held for it, and where the gateway reads it in
the replies of vendors. Generated from \`src/config/price-units.ts\`.

${body.replaceAll("](native.md", "](../native.md")}`;
}

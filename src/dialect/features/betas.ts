/** Refuses betas that a vendor may bill and that are unknown to the gateway (R-TXT-13). Pure. */
import { invalid } from "../../core/validation.ts";
import { type FeatureUnit, refuseUnpriced } from "./billed-features.ts";

/** The header of a style that switches on betas, and the values that are known. */
export interface Betas {
  /** In lower case. */
  readonly header: string;
  /** Keys in lower case; a price unit is what the model needs. */
  readonly known: Readonly<Record<string, "free" | "refused" | FeatureUnit>>;
}

/** Betas that the operator allows. */
export interface BetaRules {
  /** Whether values that are not known are refused or pass. Default: refused. */
  readonly unknownBetas?: "refuse" | "pass" | undefined;
  /** Whether the model has a price. Default: no. */
  readonly hasPrice?: ((unit: FeatureUnit) => boolean) | undefined;
}

/**
 * Checks the betas of a request.
 *
 * @param headers names in lower case
 * @throws GatewayError INVALID_REQUEST, naming the header and the value
 */
export function checkBetas(
  headers: Readonly<Record<string, string>>,
  { header, known }: Betas,
  { unknownBetas = "refuse", hasPrice }: BetaRules,
): void {
  const values = headers[header];
  if (values === undefined) return;
  for (const value of values.split(",").map((each) => each.trim())) {
    const key = value.toLowerCase();
    const beta = Object.hasOwn(known, key) ? known[key] : undefined;
    if (value === "" || beta === "free") continue;
    const asked = `the beta "${value.slice(0, 128)}"`;
    if (beta === undefined) {
      if (unknownBetas === "pass") continue;
      throw invalid(
        header,
        `"${header}" names ${asked}, which the gateway does not know and the vendor may bill: leave it out; the operator allows such values with unknown_betas of the vendor in uas.yaml`,
      );
    }
    if (beta === "refused") {
      throw invalid(header, `"${header}" names ${asked}, which is not served here: leave it out`);
    }
    if (hasPrice?.(beta) !== true) throw refuseUnpriced(header, asked, beta);
  }
}

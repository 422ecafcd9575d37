/** Discounts: hundredths of a percent in the contract, percent for people. */

/** `12.5 %`; a dash where there is none. */
export function discountText(bp: number): string {
  return bp === 0 ? "—" : `${bp / 100} %`;
}

/** Reads what a person typed as a percentage. @returns hundredths of a percent; `undefined` where it is none */
export function parsePercent(text: string): number | undefined {
  const found = /^(\d{1,3})(?:\.(\d{1,2}))?\s*%?$/.exec(text.trim());
  if (found === null) return text.trim() === "" ? 0 : undefined;
  const [, whole = "0", fraction = ""] = found;
  const bp = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  return bp <= 10_000 ? bp : undefined;
}

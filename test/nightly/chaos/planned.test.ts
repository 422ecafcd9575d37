/** A run of chaos proves everything that was requested, or fails. */
import { expect, test } from "vitest";
import { planRounds } from "./planned.ts";

const usual = {
  modes: ["ledger", "gateway"],
  rounds: 2,
  seed: 1,
  only: "",
  isFast: false,
} as const;

test("chaos refuses a name that no fault has, and lists the names", () => {
  const plan = (): unknown => planRounds({ ...usual, only: "nosuchfault" });
  expect(plan).toThrow(/"nosuchfault" in its name; they are: .*settle\.queued.*frozen database/);
});

test("chaos reports each fault that this machine cannot make, in each requested mode", () => {
  const obstacleOf = ({ kind }: { readonly kind: string }): string | undefined =>
    kind === "frozen" ? "it needs root" : undefined;
  const { rounds, missing } = planRounds({ ...usual, only: "frozen", obstacleOf });
  expect(missing).toEqual([
    "ledger: frozen, taken for dead, thawed: not run, it needs root",
    "gateway: frozen, taken for dead, thawed: not run, it needs root",
  ]);
  expect(new Set(rounds.map(({ fault }) => fault.kind))).toEqual(new Set(["stalled"]));
});

test("in the long form of chaos the first round of each fault has the timings of production, in every mode", () => {
  const isFull = ({ mode, fault }: { mode: string; fault: { name: string } }): string =>
    `${mode} ${fault.name}`;
  const { rounds } = planRounds(usual);
  const full = rounds.filter((round) => round.isFull).map(isFull);
  expect(full).toEqual([...new Set(rounds.map(isFull))]);
  expect(planRounds({ ...usual, isFast: true }).rounds.some((round) => round.isFull)).toBe(false);
});

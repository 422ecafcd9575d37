/** The states that a process alerts its operator of. */
import { tmpdir } from "node:os";
import { afterEach, expect, test, vi } from "vitest";
import { createConditions } from "../../../src/app/alert-conditions.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { Breaker } from "../../../src/routing/breaker.ts";
import type { Target } from "../../../src/routing/targets.ts";
import { breakerDefault } from "../../../src/config/routing.ts";

afterEach(() => void vi.useRealTimers());

function createRig() {
  const state = {
    journalEntries: 0,
    findings: 0,
    nowMs: 0,
    problem: undefined as string | undefined,
  };
  const breakers = { key: new Breaker(breakerDefault), route: new Breaker(breakerDefault) };
  const targets = [
    { vendor: "openai", model: "", credential: "main", breaker: breakers.key },
    { vendor: "other", model: "m-1", credential: "", breaker: breakers.route },
  ] as unknown as Target[];
  const metrics = createMetrics();
  const read = createConditions({
    targets: { all: () => targets.values(), clock: () => state.nowMs },
    ledger: { stats: () => ({ journalEntries: state.journalEntries }) as never },
    jobs: { findings: () => state.findings },
    clock: { problem: undefined },
    metrics,
    dataDir: tmpdir(),
    config: () => ({ problem: state.problem }),
  });
  const names = async (): Promise<string[]> =>
    (await read())
      .filter(({ name }) => name !== "disk_nearly_full")
      .map(({ name, subject }) => `${name} ${subject}`.trim());
  return { state, breakers, metrics, names };
}

test("a refused credential is an alert at once, another open breaker after three minutes", async () => {
  const { state, breakers, names } = createRig();
  breakers.key.failed("credential", 0);
  for (let count = 0; count < breakerDefault.failures; count++) breakers.route.failed("server", 0);
  expect(await names()).toEqual(["credential_refused openai main"]);
  state.nowMs = 180_000;
  expect(await names()).toEqual(["credential_refused openai main", "breaker_open other m-1"]);
});

test("a loss, a failed audit, a faulty file and a journal that does not drain are alerts", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const { state, metrics, names } = createRig();
  Object.assign(state, { journalEntries: 1, findings: 2, problem: "uas.yaml:3:1" });
  metrics.platformLoss.inc({ reason: "shortfall" }, 5);
  const others = ["platform_loss", "ledger_audit_failed", "configuration_faulty"];
  expect(await names()).toEqual(others);
  vi.advanceTimersByTime(60_000);
  expect(await names()).toEqual(["journal_in_use", ...others]);
});

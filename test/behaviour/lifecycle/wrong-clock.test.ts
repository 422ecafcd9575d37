/** A gateway on a machine whose clock is wrong. */
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";

test("R-OPS-3: a machine whose clock is more than 5 s from the database's is not ready and says why", async () => {
  const clock = { ...systemClock, now: () => Date.now() - 60_000 };
  const gateway = await startGateway({
    vendors: { demo: { kind: "demo", baseUrl: "" } },
    models: { text: { routes: [{ vendor: "demo", model: "instant" }] } },
    clock,
  });
  onTestFinished(() => gateway.close());
  const { status, body } = await send(`${gateway.url}/readyz`, { method: "GET" });
  expect(status).toBe(503);
  expect(body.toString()).toMatch(
    /^not ready: the clock of this machine is (59|60) s behind the database's; set both by NTP\n$/,
  );
  expect((await send(`${gateway.url}/healthz`, { method: "GET" })).status).toBe(200);
});

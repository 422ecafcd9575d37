/** A key can be exempt from the default limits of the configuration. */
import { expect, it } from "vitest";
import { unlimitedRate } from "../../../src/core/rate-limits.ts";
import { ask, useGateway } from "../harness.ts";

const none = { rpm: undefined, tpm: undefined, concurrency: undefined };
const fixture = useGateway(() => ({
  limits: { key: { ...none, rpm: 1 }, account: undefined, model: undefined },
}));

it("a key whose limit is unlimited has no default limit, and others have", async () => {
  const { gateway } = fixture;
  const { accountId, key } = await gateway.customer();
  const rateLimits = { rpm: unlimitedRate };
  const exempt = await gateway.keys.createKey({ accountId, rateLimits });
  expect(exempt.key?.rateLimits).toMatchObject(rateLimits);
  const statusesWith = async (secret: string): Promise<number[]> => {
    const statuses: number[] = [];
    for (let count = 0; count < 3; count++) {
      statuses.push((await fixture.chat(ask, { authorization: `Bearer ${secret}` })).status);
    }
    return statuses;
  };
  expect(await statusesWith(exempt.secret)).toEqual([200, 200, 200]);
  expect(await statusesWith(key)).toEqual([200, 429, 429]);
});

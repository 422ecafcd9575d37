/** The time that rate limits of a key add to a call, beside calls of a key without limits. */
import { Pool } from "undici";
import type { GatewayContestant } from "./contestants.ts";
import { print } from "./report.ts";
import { publicModel, requestBody, requestPath, scenarioOf } from "./scenario.ts";
import { median } from "./statistics.ts";

/** Limits that no call reaches. */
const rateLimits = { rpm: 1_000_000, tpm: 1_000_000_000, concurrency: 1_000 };

/**
 * Sends calls of both keys in turns, one at a time. Returns the milliseconds that the limits add at
 * p50.
 */
export async function benchLimits(gateway: GatewayContestant, pairs: number): Promise<number> {
  const { operator, accountId, ports } = gateway;
  const limited = await operator.createKey(accountId, rateLimits);
  const pool = new Pool(`http://127.0.0.1:${ports.json}`, { connections: 1 });
  const body = requestBody(scenarioOf("json"), publicModel("json"));
  const timed = async (key: string): Promise<number> => {
    const begun = performance.now();
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const reply = await pool.request({ method: "POST", path: requestPath, headers, body });
    await reply.body.dump();
    if (reply.statusCode !== 200) throw new Error(`limits: ${reply.statusCode}`);
    return performance.now() - begun;
  };
  const times: Record<"free" | "limited", number[]> = { free: [], limited: [] };
  try {
    for (let pair = 0; pair < pairs * 1.25; pair++) {
      times.free.push(await timed(gateway.key));
      times.limited.push(await timed(limited));
    }
  } finally {
    await pool.close();
  }
  // The first quarter warms up.
  const [free, withLimits] = [times.free, times.limited].map((each) => median(each.slice(-pairs)));
  const addedMs = (withLimits ?? Number.NaN) - (free ?? Number.NaN);
  print("Rate limits of a key (requests, tokens and concurrency), one call at a time");
  print(
    `  ${addedMs.toFixed(2)} ms more than the ${free?.toFixed(2)} ms of a key without limits, at p50`,
  );
  print();
  return addedMs;
}

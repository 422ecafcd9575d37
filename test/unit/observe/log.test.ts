/** No secret in any line of the log, wherever it stands (R-AUTH-4). */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLog, createScrubber } from "../../../src/observe/log.ts";

const key = `uas_${"aB3".repeat(10)}Zz`;
const vendorSecret = "sk-vendor-canary-1";
const longerSecret = `${vendorSecret}-and-more`;
const operatorToken = 'operator"canary\\1';
const password = "p@ss:w/rd canary";
const secrets = [vendorSecret, longerSecret, operatorToken, password];

/** Runs `work` with a log and returns what it wrote. */
function written(work: (log: ReturnType<typeof createLog>["log"]) => void): string[] {
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line) };
  work(createLog({ secrets, sink, level: "trace" }).log);
  return lines;
}

function expectClean(text: string): void {
  for (const secret of [key, ...secrets]) {
    for (const form of [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])
      expect(text).not.toContain(form);
  }
  expect(text).not.toContain("canary");
}

function failureWith(text: string): Error {
  const cause = Object.assign(new Error(`deepest ${text}`), { detail: text });
  const middle = new TypeError(`middle ${text}`, { cause });
  const error = new AggregateError([new Error(`one of ${text}`)], `top ${text}`, { cause: middle });
  return Object.assign(error, { code: text });
}

describe("R-AUTH-4: the log", () => {
  it.each([key, ...secrets])(
    "hides %j in messages, fields, and errors with stacks and causes",
    (secret) => {
      const lines = written((log) => {
        log.info(`said ${secret} and ${secret}`);
        log.warn(
          { url: `/v1/x?api-key=${secret}`, deep: { list: [secret, { secret }] } },
          "fields",
        );
        log.error({ err: failureWith(secret) }, "an err");
        log.error({ error: failureWith(secret) }, "an error");
        log.error(failureWith(secret));
        log.child({ secret }).debug({ [secret]: 1 }, "a child");
      });
      expect(lines).toHaveLength(6);
      expectClean(lines.join(""));
      for (const line of lines) {
        expect(line).toContain("hidden]");
        expect(() => void JSON.parse(line)).not.toThrow();
      }
    },
  );

  it("the log shows what happened all the same: message, stack and cause of errors under either name", () => {
    const error = new Error("top", { cause: new Error("deepest") });
    for (const name of ["err", "error"]) {
      const [line = "{}"] = written((log) => log.warn({ [name]: error }, "failed"));
      const said = (JSON.parse(line) as Record<string, Record<string, string>>)[name];
      expect(said?.["message"]).toContain("top");
      expect(said?.["message"]).toContain("deepest");
      expect(said?.["stack"]).toContain("log.test.ts");
    }
    const [line = ""] = written((log) => log.warn({ error: "a text" }, "failed"));
    expect(line).toContain('"error":"a text"');
  });

  it("the log hides the password of a database address as it is written there", () => {
    const url = `postgres://user:${encodeURIComponent(password)}@db/uas`;
    const [line = ""] = written((log) => log.error(`cannot connect to ${url}`));
    expectClean(line);
    expect(line).toContain("@db/uas");
  });

  it("the log leaves lines without a secret as they are", () => {
    const lines = written((log) => {
      log.info({ path: "/v1/models", uas_metric: "uas_requests_total", key: "uas_short" }, "uas_");
    });
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      msg: "uas_",
      uas_metric: "uas_requests_total",
      key: "uas_short",
    });
  });

  it("the log hides every key by its form, whatever stands around it", () => {
    const text = fc.stringMatching(/^[A-Za-z0-9]{32}$/);
    const scrub = createScrubber([]);
    fc.assert(
      fc.property(text, fc.string(), fc.string(), (random, before, after) => {
        const secret = `uas_${random}`;
        expect(scrub(`${before}${secret}${after}`)).not.toContain(secret);
      }),
    );
    const secret = `whsec_${"aB3+".repeat(10)}/x9=`;
    expect(scrub(`{"a":"${secret}"}`)).toBe('{"a":"whsec_[hidden]"}');
  });

  it("the log hides every given secret whole, also where one begins with another", () => {
    const secret = fc.string({ minLength: 6, maxLength: 12 });
    fc.assert(
      fc.property(fc.array(secret, { minLength: 1, maxLength: 4 }), fc.string(), (all, tail) => {
        const longer = all.map((one) => `${one}-tail-canary`);
        const scrub = createScrubber([...all, ...longer]);
        for (const one of longer) {
          expect(scrub(JSON.stringify({ msg: `${tail} ${one} ${tail}` }))).not.toContain(
            "tail-canary",
          );
        }
      }),
    );
  });

  it("the log names the worker in each line", () => {
    const lines: string[] = [];
    const sink = { write: (line: string) => void lines.push(line) };
    const { log } = createLog({ secrets, sink, worker: 2 });
    log.info({ a: 1 }, "a line");
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: 30, worker: 2, a: 1, msg: "a line" });
  });
});

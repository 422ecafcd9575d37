/** Which waiter gets the next permit. */
import { expect, test } from "vitest";
import { FairSemaphore } from "../../../../src/db/pool/fair-semaphore.ts";

/** Two permits, of which the account `many` may have one. */
function open() {
  const semaphore = new FairSemaphore({
    permits: 2,
    shareOf: (account) => (account === "many" ? 1 : 2),
  });
  const begun: string[] = [];
  const failed: string[] = [];
  const enter = (account: string, name = account, ms = 60_000): Promise<void> => {
    if (semaphore.tryAcquire(account)) {
      begun.push(name);
      return Promise.resolve();
    }
    return semaphore.wait(account, { ms, error: () => new Error("too long") }).then(
      () => void begun.push(name),
      ({ message }: Error) => void failed.push(`${name}: ${message}`),
    );
  };
  const release = async (account: string): Promise<void> => {
    semaphore.release(account);
    // The waiter begins in a later turn.
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { semaphore, begun, failed, enter, release };
}

test("accounts take turns, and each keeps its order", async () => {
  const { semaphore, begun, enter, release } = open();
  for (const name of ["a1", "a2", "a3", "a4"]) void enter("a", name);
  for (const name of ["b1", "b2"]) void enter("b", name);
  void enter("c", "c1");
  expect(begun).toEqual(["a1", "a2"]);
  for (const account of ["a", "a", "a", "b"]) await release(account);
  expect(begun.slice(2)).toEqual(["a3", "b1", "c1", "a4"]);
  expect([semaphore.waitersOf("a"), semaphore.waitersOf("b")]).toEqual([0, 1]);
  await release("c");
  expect([begun.at(-1), semaphore.waitersOf("b")]).toEqual(["b2", 0]);
});

test("an account that has its share waits although a permit is free, and delays no other account", async () => {
  const { begun, enter, release } = open();
  void enter("many", "m1");
  void enter("many", "m2");
  void enter("few", "f1");
  expect(begun).toEqual(["m1", "f1"]);
  await release("few");
  expect(begun).toHaveLength(2);
  await release("many");
  expect(begun).toEqual(["m1", "f1", "m2"]);
});

test("a waiter that waited too long fails and loses its turn, and the others keep theirs", async () => {
  const { begun, failed, enter, release } = open();
  void enter("a", "a1");
  void enter("a", "a2");
  const late = enter("a", "a3", 1);
  void enter("a", "a4");
  await late;
  expect(failed).toEqual(["a3: too long"]);
  await release("a");
  expect(begun).toEqual(["a1", "a2", "a4"]);
});

test("all waiters fail together, and later ones wait as before", async () => {
  const { semaphore, begun, failed, enter, release } = open();
  void enter("a", "a1");
  void enter("b", "b1");
  const waiting = [enter("a", "a2"), enter("b", "b2")];
  semaphore.rejectWaiters(new Error("lost"));
  await Promise.all(waiting);
  expect(failed).toEqual(["a2: lost", "b2: lost"]);
  void enter("a", "a3");
  await release("b");
  expect(begun).toEqual(["a1", "b1", "a3"]);
});

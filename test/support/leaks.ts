/** Every resource that a test file opens is closed, or the file fails. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll } from "vitest";

/** Counted resources: sockets, servers, child processes, timers; not work that ends by itself. */
const counted = new Set([
  "PipeServerWrap",
  "PipeWrap",
  "ProcessWrap",
  "TCPServerWrap",
  "TCPSocketWrap",
  "TLSWrap",
  "Timeout",
  "UDPWrap",
  "Worker",
]);

/** Maximum time for closing resources to disappear. */
const settleMs = 10_000;

/** Resources of the test runner. */
const before = count();

// Set up first, so it runs after every hook of the file.
afterAll(async () => {
  const deadline = Date.now() + settleMs;
  let open = left();
  while (open.length > 0 && Date.now() < deadline) {
    // Not one of the timers that are counted: awaiting it ends it.
    await sleep(5);
    open = left();
  }
  if (open.length > 0) {
    throw new Error(`left open by this file: ${open.join(", ")}; close it in an after hook`);
  }
});

function count(): Map<string, number> {
  // The standard streams open when first touched: not by a test, but here.
  for (const stream of [process.stdin, process.stdout, process.stderr])
    stream.listenerCount("error");
  const counts = new Map<string, number>();
  for (const type of process.getActiveResourcesInfo()) {
    if (counted.has(type)) counts.set(type, (counts.get(type) ?? 0) + 1);
  }
  return counts;
}

/** Returns the resources opened since: `2 × TCPSocketWrap`. */
function left(): string[] {
  return [...count()].flatMap(([type, number]) => {
    const more = number - (before.get(type) ?? 0);
    return more > 0 ? [`${more} × ${type}`] : [];
  });
}

/** The members of a task that this program reads. */
interface Task {
  readonly taskId: string;
  readonly status: "progress" | "completed" | "failed" | "cancelled";
  readonly resultUrls: readonly string[];
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly cost: { readonly amount: string; readonly currency: string } | null;
}

const base = process.env["UAS_URL"] ?? "http://127.0.0.1:8080";
const headers = {
  authorization: `Bearer ${process.env["UAS_API_KEY"]}`,
  "content-type": "application/json",
};

async function call(path: string, init: RequestInit = {}): Promise<Task> {
  const reply = await fetch(base + path, { ...init, headers });
  if (!reply.ok) throw new Error(`${reply.status} ${await reply.text()}`);
  return (await reply.json()) as Task;
}

// If this program dies and submits again with the same callbackId, it gets the same task.
const callbackId = process.argv[2] ?? crypto.randomUUID();
const { taskId } = await call("/api/ai/tasks", {
  method: "POST",
  body: JSON.stringify({
    modelKey: "demo-image",
    imageParams: { prompt: "A lighthouse at dawn" },
    callbackId,
  }),
});

let task: Task;
do {
  // Answers at the next change, or after 30 seconds.
  task = await call(`/api/ai/tasks/${taskId}?wait=30`);
} while (task.status === "progress");

if (task.status !== "completed") throw new Error(`${task.status}: ${task.error?.message}`);
console.log(task.resultUrls.join("\n"));
console.log(`cost: ${task.cost?.amount} ${task.cost?.currency}`);

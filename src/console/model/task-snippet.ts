/** How a task is submitted. */

/** A submit for the shell, with the key read from the environment. */
export function taskSnippet({ origin, body }: { origin: string; body: object }): string {
  const json = JSON.stringify(body, undefined, 2).replaceAll("'", String.raw`'\''`);
  return `curl ${origin}/api/ai/tasks \\
  -H "authorization: Bearer $UAS_API_KEY" \\
  -H "content-type: application/json" \\
  -d '${json}'`;
}

/**
 * Examples that run when they are pasted: with this gateway's address, a model that exists and the
 * real key.
 */

/** Code in one of several languages. */
export interface CodeVersion {
  readonly id: string;
  readonly title: string;
  readonly code: string;
  /** The text to copy, if it is longer than the visible text. */
  readonly copied?: () => string;
}

interface SnippetOptions {
  /** Scheme, host and port of the gateway. */
  readonly origin: string;
  readonly model: string;
  /** The secret; if undefined, it is read from `UAS_API_KEY`. */
  readonly key: string | undefined;
}

/**
 * A first call in several languages. Some SDKs expect `/v1` in their base URL, others add it
 * themselves.
 */
export function snippets({ origin, model, key }: SnippetOptions): readonly CodeVersion[] {
  const shellKey = key ?? "$UAS_API_KEY";
  const python = key === undefined ? 'os.environ["UAS_API_KEY"]' : JSON.stringify(key);
  const node = key === undefined ? "process.env.UAS_API_KEY" : JSON.stringify(key);
  const importOs = key === undefined ? "import os\n" : "";
  return [
    {
      id: "curl",
      title: "curl",
      code: `curl ${origin}/v1/chat/completions \\
  -H "authorization: Bearer ${shellKey}" \\
  -H "content-type: application/json" \\
  -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`,
    },
    {
      id: "python",
      title: "Python",
      code: `${importOs}from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=${python})
reply = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(reply.choices[0].message.content)`,
    },
    {
      id: "node",
      title: "Node.js",
      code: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${origin}/v1", apiKey: ${node} });
const reply = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(reply.choices[0].message.content);`,
    },
    {
      id: "anthropic",
      title: "Anthropic",
      code: `${importOs}from anthropic import Anthropic

client = Anthropic(base_url="${origin}", api_key=${python})
reply = client.messages.create(
    model="${model}",
    max_tokens=256,
    messages=[{"role": "user", "content": "Hello"}],
)
print(reply.content[0].text)`,
    },
    {
      id: "claude-code",
      title: "Claude Code",
      code: `export ANTHROPIC_BASE_URL=${origin}
export ANTHROPIC_AUTH_TOKEN="${shellKey}"
export ANTHROPIC_MODEL=${model}
claude`,
    },
  ];
}

/** A curl that submits a task, with the key from the environment. */
export function taskSnippet({ origin, body }: { origin: string; body: object }): string {
  const json = JSON.stringify(body, undefined, 2).replaceAll("'", String.raw`'\''`);
  return `curl ${origin}/api/ai/tasks \\
  -H "authorization: Bearer $UAS_API_KEY" \\
  -H "content-type: application/json" \\
  -d '${json}'`;
}

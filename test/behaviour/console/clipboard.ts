/** The copied text of a page, and its effect when pasted. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import type { Locator, Page } from "playwright-core";

const run = promisify(execFile);

/** Presses a button that copies; resolves with what the clipboard has then. */
export async function copiedBy(page: Page, button: Locator): Promise<string> {
  await page.evaluate("navigator.clipboard.writeText('')");
  await button.click();
  // "Copied" is shown for two seconds only, which a busy machine can miss.
  await page.waitForFunction("navigator.clipboard.readText().then((text) => text !== '')");
  return String(await page.evaluate("navigator.clipboard.readText()"));
}

/** Runs a program of the shell with a key; resolves with what it printed. */
export async function pasted(program: string, key: string): Promise<string> {
  const env = { ...process.env, UAS_API_KEY: key };
  const { stdout } = await run("sh", ["-c", program.replace("curl ", "curl -sS ")], { env });
  return stdout;
}

/** A request on the wire. */
export interface Wire {
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
}

/** Returns what a copied curl sends to a server that replaces the gateway. */
export async function wireOf(
  curl: string,
  { origin, key }: { origin: string; key: string },
): Promise<Wire> {
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      server.emit("got", { body: body.toString(), headers: request.headers });
      response.end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const got = once(server, "got");
  await pasted(curl.replace(origin, `http://127.0.0.1:${port}`), key);
  const [told] = (await got) as [Wire];
  server.close();
  return told;
}

/** The results of simulated vendors of tasks, for a gateway that copies them. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/**
 * Stands before a simulated vendor, whose results are on hosts that do not exist, and has the
 * results itself.
 */
export async function startFiles(
  vendorOrigin: string,
  file: { readonly type: string; readonly bytes: Buffer },
  onEnd: (close: () => void) => void = onTestFinished,
): Promise<string> {
  const server = createServer((request, response) => {
    void (async () => {
      const { method = "", url = "" } = request;
      if (url.startsWith("/result/")) {
        response.writeHead(200, { "content-type": file.type }).end(file.bytes);
        return;
      }
      const { host: _own, connection: _hop, ...headers } = request.headers;
      const sent = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
      const answer = await fetch(vendorOrigin + url, {
        method,
        headers: headers as Record<string, string>,
        ...(sent.length > 0 && { body: sent }),
      });
      const text = await answer.text();
      const here = `http://${request.headers.host ?? ""}`;
      response.writeHead(answer.status, { "content-type": "application/json" });
      response.end(
        text
          .replaceAll(vendorOrigin, here)
          .replaceAll(
            /https:\/\/(?:replicate\.delivery|v3\.fal\.media|dashscope-result\.oss\.test)/g,
            `${here}/result`,
          ),
      );
    })().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A vendor that takes forms with files, read by another parser than the gateway's. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** A form as it came. */
export interface ArrivedForm {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly fields: Readonly<Record<string, string>>;
  readonly files: readonly {
    readonly name: string;
    readonly fileName: string;
    readonly type: string;
    readonly bytes: Buffer;
  }[];
}

/** The answer. */
interface FormAnswer {
  /** Default 200. */
  readonly status?: number;
  /** Default: JSON. */
  readonly type?: string;
  readonly body: string;
}

/** A running vendor. */
export interface FormVendor {
  /** Without `/v1`. */
  readonly url: string;
  readonly requests: ArrivedForm[];
  /** Answers all later requests. */
  answer: (request: ArrivedForm) => FormAnswer | Promise<FormAnswer>;
  close(): Promise<void>;
}

/** Starts one on a free port of 127.0.0.1. */
export async function startFormVendor(): Promise<FormVendor> {
  const server = createServer((incoming, response) => {
    void (async () => {
      const body = Buffer.concat(await Array.fromAsync(incoming as AsyncIterable<Buffer>));
      const { url = "", headers } = incoming;
      const request = { url, headers, ...(await readForm(headers["content-type"] ?? "", body)) };
      vendor.requests.push(request);
      const { status = 200, type = "application/json", body: text } = await vendor.answer(request);
      response.writeHead(status, { "content-type": type });
      response.end(text);
    })().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const vendor: FormVendor = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    answer: () => ({ body: "{}" }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return vendor;
}

async function readForm(
  type: string,
  body: Buffer,
): Promise<Pick<ArrivedForm, "fields" | "files">> {
  const response = new Response(new Uint8Array(body), { headers: { "content-type": type } });
  const form = await response.formData();
  const fields: Record<string, string> = {};
  const files: ArrivedForm["files"][number][] = [];
  for (const [name, value] of form) {
    if (typeof value === "string") fields[name] = value;
    else {
      const bytes = Buffer.from(await value.arrayBuffer());
      files.push({ name, fileName: value.name, type: value.type, bytes });
    }
  }
  return { fields, files };
}

import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

/** The members of a webhook that this program reads. */
interface Payload {
  readonly status: "progress" | "completed" | "failed" | "cancelled";
  readonly callback_id: string | null;
  readonly result_url: string | null;
  readonly external_data: { readonly event_id: string };
}

const webhook = new Webhook(process.env["UAS_WEBHOOK_SECRET"] ?? "");

/** Events that were handled. A real service keeps them in its database, with the work itself. */
const handled = new Set<string>();

/** @returns the HTTP status to answer */
async function receive(request: IncomingMessage): Promise<number> {
  // The signature is of the bytes as they were sent.
  const body = await text(request);
  try {
    const payload = webhook.verify(body, request.headers as Record<string, string>) as Payload;
    const { event_id: eventId } = payload.external_data;
    if (!handled.has(eventId)) {
      handled.add(eventId);
      console.log(`${payload.callback_id} ${payload.status} ${payload.result_url ?? ""}`.trim());
    }
    return 204;
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    return 401;
  }
}

const server = createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    () => response.writeHead(500).end(),
  );
});

server.listen(Number(process.env["PORT"] ?? 3000), () => {
  console.log("listening", server.address());
});

/** An internal service that calls the gateway over gRPC. */
import { ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ErrorCode, ErrorDetailSchema } from "uas-gateway-client/error/v1/error";
import { Role } from "uas-gateway-client/inference/v1/conversation";
import { InferenceService } from "uas-gateway-client/inference/v1/inference_service";

const transport = createGrpcTransport({
  baseUrl: process.env["UAS_INTERNAL_URL"] ?? "http://127.0.0.1:8081",
});
const inference = createClient(InferenceService, transport);
const options = { headers: { authorization: `Bearer ${process.env["UAS_API_KEY"]}` } };

const { models } = await inference.listModels({}, options);
process.stdout.write(`models: ${models.map(({ modelKey }) => modelKey).join(", ")}\n`);

const hello = { kind: { case: "text" as const, value: { text: "Hello" } } };
const conversation = { turns: [{ role: Role.USER, parts: [hello] }] };
const stream = inference.streamGenerate(
  { generation: { model: "demo-chat", conversation } },
  options,
);
for await (const { event } of stream) {
  if (event?.kind.case !== "partDelta") continue;
  const { delta } = event.kind.value;
  if (delta.case === "text") process.stdout.write(delta.value);
}
process.stdout.write("\n");

try {
  await inference.getModel({ modelKey: "none" }, options);
} catch (error) {
  const [detail] = ConnectError.from(error).findDetails(ErrorDetailSchema);
  if (detail?.code !== ErrorCode.MODEL_NOT_FOUND) throw error;
  process.stdout.write("there is no model called none\n");
}

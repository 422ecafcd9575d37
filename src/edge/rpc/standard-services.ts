/** The two standard gRPC services, health and reflection. connect-es provides neither. */
import {
  clone,
  createFileRegistry,
  createRegistry,
  type DescFile,
  type DescService,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ServiceImpl } from "@connectrpc/connect";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/health/v1/health_pb.ts";
import { file_reflection, ServerReflection } from "../../../gen/reflection_pb.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";

/**
 * The health service that gRPC load balancers query. The empty service name means the whole server.
 */
export function createHealthService(
  services: readonly DescService[],
  isReady: () => Promise<boolean>,
): ServiceImpl<typeof Health> {
  const names = new Set(["", ...services.map((service) => service.typeName)]);
  const status = async () => ({ status: (await isReady()) ? Status.SERVING : Status.NOT_SERVING });
  return {
    check({ service }) {
      if (names.has(service)) return status();
      throw new GatewayError(
        ErrorCode.NOT_FOUND,
        `There is no service ${service.slice(0, 200)} here`,
      );
    },
    async list() {
      const now = await status();
      return { statuses: Object.fromEntries([...names].map((name) => [name, now])) };
    },
    async *watch({ service }, { signal }) {
      if (!names.has(service)) {
        yield { status: Status.SERVICE_UNKNOWN };
        return;
      }
      let last: Status | undefined;
      while (!signal.aborted) {
        const now = await status();
        if (now.status !== last) yield now;
        last = now.status;
        await pause(signal);
      }
    },
  };
}

/** Interval between checks of a watched status. */
const watchMs = 1_000;

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, watchMs);
    signal.addEventListener("abort", finish);
  });
}

/**
 * Server reflection under its name before its release, with the same messages. Older clients
 * (grpcurl before 1.9, Postman) request no other.
 */
export const ServerReflectionAlpha: DescService = alphaOf(ServerReflection);

function alphaOf({ name }: DescService): DescService {
  const released = "grpc.reflection.v1";
  const alpha = "grpc.reflection.v1alpha";
  const file = clone(FileDescriptorProtoSchema, file_reflection.proto);
  const rename = (typeName: string): string => typeName.replace(`.${released}.`, `.${alpha}.`);
  file.name = "grpc/reflection/v1alpha/reflection.proto";
  file.package = alpha;
  for (const { field } of file.messageType) {
    for (const each of field) each.typeName = rename(each.typeName);
  }
  for (const method of file.service.flatMap((service) => service.method)) {
    method.inputType = rename(method.inputType);
    method.outputType = rename(method.outputType);
  }
  const service = createFileRegistry(file, () => undefined).getService(`${alpha}.${name}`);
  if (service === undefined) throw new TypeError("reflection has no such service");
  return service;
}

/** Server reflection, so that `buf curl` and grpcurl need no proto files. */
export function createReflectionService(
  services: readonly DescService[],
): ServiceImpl<typeof ServerReflection> {
  const files = new Map<string, DescFile>();
  for (const service of services) collect(service.file, files);
  const registry = createRegistry(...files.values());

  const fileOf = (symbol: string): DescFile | undefined => {
    const found = registry.get(symbol) ?? registry.get(symbol.slice(0, symbol.lastIndexOf(".")));
    return found && "file" in found ? found.file : undefined;
  };

  const answer = (file: DescFile | undefined, what: string) => {
    if (file === undefined) return noSuchFile(what);
    const needed = [...collect(file, new Map()).values()];
    const fileDescriptorProto = needed.map((each) =>
      toBinary(FileDescriptorProtoSchema, each.proto),
    );
    return { case: "fileDescriptorResponse" as const, value: { fileDescriptorProto } };
  };

  return {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        const query = request.messageRequest;
        const base = { validHost: request.host, originalRequest: request };
        if (query.case === "listServices") {
          const service = services.map(({ typeName }) => ({ name: typeName }));
          yield { ...base, messageResponse: { case: "listServicesResponse", value: { service } } };
        } else if (query.case === "fileByFilename") {
          const file = files.get(query.value.replace(/\.proto$/, ""));
          yield { ...base, messageResponse: answer(file, query.value) };
        } else if (query.case === "fileContainingSymbol") {
          yield { ...base, messageResponse: answer(fileOf(query.value), query.value) };
        } else {
          yield { ...base, messageResponse: noSuchFile(query.case ?? "an empty request") };
        }
      }
    },
  };
}

function noSuchFile(what: string) {
  const value = { errorCode: Code.NotFound, errorMessage: `not found: ${what}` };
  return { case: "errorResponse" as const, value };
}

function collect(file: DescFile, into: Map<string, DescFile>): Map<string, DescFile> {
  if (into.has(file.name)) return into;
  for (const dependency of file.dependencies) collect(dependency, into);
  return into.set(file.name, file);
}

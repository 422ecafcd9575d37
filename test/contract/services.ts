/** The services of the generated contract, found, not listed: a new one cannot be forgotten. */
import { globSync } from "node:fs";
import { join } from "node:path";
import type { DescMethod, DescService } from "@bufbuild/protobuf";

const root = join(import.meta.dirname, "../..");

/** Every service of `uas`, by name. */
export async function findServices(): Promise<DescService[]> {
  const files = globSync("gen/uas/**/*_pb.ts", { cwd: root }).toSorted();
  const modules: object[] = await Promise.all(files.map((file) => import(join(root, file))));
  return modules.flatMap((module) => Object.values(module).filter(isService));
}

/** Every RPC of `uas`, with its name: `inference.v1.InferenceService/Exchange`. */
export async function findMethods(): Promise<{ name: string; method: DescMethod }[]> {
  const services = await findServices();
  return services.flatMap((service) =>
    service.methods.map((method) => ({
      name: `${service.typeName.replace(/^uas\./, "")}/${method.name}`,
      method,
    })),
  );
}

function isService(value: unknown): value is DescService {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "service";
}

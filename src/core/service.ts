import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";

/** A service of the contract and its implementation. */
export interface Service {
  readonly service: DescService;
  readonly implementation: ServiceImpl<DescService>;
}

/** Pairs a service with its implementation; the types ensure that they match. */
export function serve<S extends DescService>(service: S, implementation: ServiceImpl<S>): Service {
  return { service, implementation };
}

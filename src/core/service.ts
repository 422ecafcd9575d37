import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";

/** A service of the contract with its implementation. */
export interface Service {
  readonly service: DescService;
  readonly implementation: ServiceImpl<DescService>;
}

/** Pairs them; the types make sure that they fit. */
export function serve<S extends DescService>(service: S, implementation: ServiceImpl<S>): Service {
  return { service, implementation };
}

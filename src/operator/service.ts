/** The RPCs of operators: what was done, how it is set up, how it does. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { MikroORM } from "@mikro-orm/postgresql";
import type { OperatorService } from "../../gen/uas/operator/v1/operator_service_pb.ts";
import { createAuditRpcs } from "./audit-rpcs.ts";
import { createSystemRpcs, type SystemRpcOptions } from "./system-rpcs.ts";
import { createVendorRpcs, type VendorRpcOptions } from "./vendor-rpcs.ts";

/** What {@link createOperatorService} needs. */
export interface OperatorServiceOptions extends SystemRpcOptions, VendorRpcOptions {
  readonly orm: MikroORM;
}

/** Makes the implementation of `uas.operator.v1.OperatorService`. */
export function createOperatorService(
  options: OperatorServiceOptions,
): ServiceImpl<typeof OperatorService> {
  return {
    ...createAuditRpcs(options.orm),
    ...createVendorRpcs(options),
    ...createSystemRpcs(options),
  };
}

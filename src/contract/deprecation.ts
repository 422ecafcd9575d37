/** Announced removals of parts of the contract. */
import {
  type DescEnumValue,
  type DescField,
  type DescMethod,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import {
  type Deprecation,
  deprecation,
  field_deprecation as fieldDeprecation,
  type Route,
  value_deprecation as valueDeprecation,
} from "../../gen/uas/http/v1/http_pb.ts";

/** The announcement of an RPC, field or enum value. Undefined if it stays. */
export function deprecationOf(
  element: DescMethod | DescField | DescEnumValue,
): Deprecation | undefined {
  switch (element.kind) {
    case "rpc":
      return hasOption(element, deprecation) ? getOption(element, deprecation) : undefined;
    case "field":
      return hasOption(element, fieldDeprecation)
        ? getOption(element, fieldDeprecation)
        : undefined;
    case "enum_value":
    default:
      return hasOption(element, valueDeprecation)
        ? getOption(element, valueDeprecation)
        : undefined;
  }
}

/** The announcement of a REST path: its own, else that of its RPC. Undefined if it stays. */
export function routeDeprecation(method: DescMethod, route: Route): Deprecation | undefined {
  return route.deprecation ?? deprecationOf(method);
}

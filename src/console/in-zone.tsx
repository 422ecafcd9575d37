/** The time zone that a page is in. */
import { createContext, type ReactNode, use } from "react";
import { localZone } from "./time.ts";

const ZoneContext = createContext<string | undefined>(undefined);

/** Shows the times of what stands in it in a zone. @param zone default: the browser's */
export function InZone({ zone, children }: { zone: string | undefined; children: ReactNode }) {
  return <ZoneContext value={zone}>{children}</ZoneContext>;
}

/** The zone of the place, an IANA name. Default: the browser's. */
export function useZone(): string {
  return use(ZoneContext) ?? localZone();
}

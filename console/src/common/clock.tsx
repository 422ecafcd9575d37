/** The current time and the time zone of a page. */
import { createContext, type ReactNode, use, useEffect, useState } from "react";
import { localZone } from "./time.ts";

/** How often relative times are rendered again, in milliseconds. */
const tickMs = 20_000;

/** Now, in milliseconds since 1970, at most 20 seconds old. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), tickMs);
    return () => clearInterval(timer);
  }, []);
  return now;
}

const ZoneContext = createContext<string | undefined>(undefined);

/** Shows all times below it in a zone. @param zone default: the browser's */
export function ZoneProvider({
  zone,
  children,
}: {
  zone: string | undefined;
  children: ReactNode;
}) {
  return <ZoneContext value={zone}>{children}</ZoneContext>;
}

/** The zone for times, an IANA name. Default: the browser's. */
export function useZone(): string {
  return use(ZoneContext) ?? localZone();
}

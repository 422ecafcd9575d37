/** The current time and the time zone of a page. */
import { createContext, type ReactNode, use, useEffect, useState } from "react";
import { localZone } from "./time.ts";

/** Interval at which relative times are rendered again. */
const tickMs = 20_000;

/** The current time in milliseconds since 1970, at most 20 seconds old. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), tickMs);
    return () => clearInterval(timer);
  }, []);
  return now;
}

const ZoneContext = createContext<string | undefined>(undefined);

/**
 * Shows all times below it in a zone.
 *
 * @param zone the browser's by default
 */
export function ZoneProvider({
  zone,
  children,
}: {
  zone: string | undefined;
  children: ReactNode;
}) {
  return <ZoneContext value={zone}>{children}</ZoneContext>;
}

/** The zone for times, an IANA name. The browser's by default. */
export function useZone(): string {
  return use(ZoneContext) ?? localZone();
}

/** The time, for pages: it goes on while they are open. */
import { useEffect, useState } from "react";

/** How often what says "2 minutes ago" is drawn anew, in milliseconds. */
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

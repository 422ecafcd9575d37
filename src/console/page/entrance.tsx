/** What the pages outside the frame stand in. */
import type { ReactNode } from "react";
import { SettingsMenu } from "../frame.tsx";

/** A card in the middle, with the brand above it. */
export function Entrance({ children }: { children: ReactNode }) {
  return (
    <div className="flex min-h-dvh flex-col">
      <header className="flex h-14 items-center justify-end px-4">
        <SettingsMenu />
      </header>
      <main className="flex flex-1 flex-col items-center px-4 pt-[8vh] pb-16">
        <img src={icon} alt="" className="mb-6 size-12" />
        <div className="w-full max-w-sm rounded-2xl border border-line bg-surface p-6 shadow-card sm:p-8">
          {children}
        </div>
      </main>
    </div>
  );
}

const icon = new URL("../icon.svg", import.meta.url).href;

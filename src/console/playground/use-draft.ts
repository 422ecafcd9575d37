/** A message while it is written. */
import { useState } from "react";
import { type Picture, type Taken, takePictures } from "./pictures.ts";

/** The draft. */
export interface Draft {
  readonly text: string;
  readonly pictures: readonly Picture[];
  /** Why files that were given last are not among the pictures. */
  readonly faults: Taken["faults"];
  readonly isEmpty: boolean;
  write(text: string): void;
  /** Adds files, as far as they can go with the message. */
  take(files: readonly File[]): Promise<void>;
  remove(index: number): void;
  clear(): void;
}

/** @param saidBytes how long the pictures are that were sent before */
export function useDraft(saidBytes: number): Draft {
  const [text, write] = useState("");
  const [pictures, setPictures] = useState<readonly Picture[]>([]);
  const [faults, setFaults] = useState<Taken["faults"]>([]);
  return {
    text,
    pictures,
    faults,
    isEmpty: text.trim() === "" && pictures.length === 0,
    write,
    async take(files) {
      const bytes = pictures.reduce((sum, each) => sum + each.bytes, saidBytes);
      const taken = await takePictures(files, { count: pictures.length, bytes });
      setPictures((before) => [...before, ...taken.pictures]);
      setFaults(taken.faults);
    },
    remove(index) {
      setPictures((before) => before.toSpliced(index, 1));
      setFaults([]);
    },
    clear() {
      write("");
      setPictures([]);
      setFaults([]);
    },
  };
}

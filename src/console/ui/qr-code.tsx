/** A text as a QR code, for cameras. */
import { encode } from "uqr";

/** The light frame that cameras need around it, in modules: what ISO/IEC 18004 asks for. */
const quietModules = 4;

/**
 * Draws it, dark on light in both themes: not every app reads the reverse. Without styles of its own, which the security
 * policy of the pages would refuse.
 */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { ecc: "M", border: quietModules });
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className="size-52 max-w-full shrink-0 rounded-lg border border-line"
    >
      <rect width={size} height={size} className="fill-white" />
      <path d={pathOf(data)} className="fill-black" />
    </svg>
  );
}

/** The dark modules: a rectangle for each run of them in a row. */
function pathOf(rows: readonly (readonly boolean[])[]): string {
  return rows
    .flatMap((row, y) =>
      [
        ...row
          .map((isDark) => (isDark ? "1" : "0"))
          .join("")
          .matchAll(/1+/g),
      ].map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`),
    )
    .join("");
}

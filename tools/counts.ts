/** Reads from vitest's JSON report how many tests passed, and which did not. */
import { existsSync, readFileSync } from "node:fs";

/** Numbers of tests by result. */
export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** The part of the report that is read. */
interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly {
    /** The path of the file. */
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

/** A file with a test that failed, or that failed outside its tests. */
export interface FailedFile {
  /** Its path. */
  readonly name: string;
  /** The full names of the tests that failed; empty if the file failed outside them. */
  readonly tests: readonly string[];
  readonly counts: Counts;
}

/** The files that failed. */
export function readFailedFiles(file: string): FailedFile[] {
  if (!existsSync(file)) return [];
  const report: Report = JSON.parse(readFileSync(file, "utf8"));
  return report.testResults
    .filter(({ status }) => status === "failed")
    .map(({ name, assertionResults }) => {
      const tests = assertionResults.filter((test) => test.status === "failed");
      const passed = assertionResults.filter((test) => test.status === "passed").length;
      const failed = Math.max(tests.length, 1);
      const skipped = assertionResults.length - passed - tests.length;
      return {
        name,
        tests: tests.map((test) => test.fullName),
        counts: { passed, failed, skipped },
      };
    });
}

/**
 * Reads the counts. A file that failed outside its tests (while loading, or by leaving something
 * open) counts as one failure. A run that failed for no reason named in the report counts as one,
 * too.
 */
export function readCounts(file: string, exitCode: number): Counts {
  if (!existsSync(file)) return { passed: 0, failed: 1, skipped: 0 };
  const report: Report = JSON.parse(readFileSync(file, "utf8"));
  const brokenFiles = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === "failed" && !assertionResults.some((test) => test.status === "failed"),
  );
  const failed = report.numFailedTests + brokenFiles.length;
  return {
    passed: report.numPassedTests,
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

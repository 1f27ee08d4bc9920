import type { Test } from 'tap'

/*
 * Bundled tests use this module in place of `async-hook-domain`. That package follows every promise, and slows down a
 * node in the same process: docs/decisions, "Tests run bundled".
 *
 * This module blames an uncaught error on the test that is running. With `t.jobs`, several tests of a file run at once:
 * it then blames the first of them.
 */

/** tap makes one `Domain` for each test. The object need not do anything. */
export class Domain {
  destroy(): void {}
}

// Node.js also calls this for a rejection without a handler.
process.setUncaughtExceptionCaptureCallback((error) => void fail(error))

async function fail(error: Error): Promise<void> {
  // tap loads this module while tap itself is still loading. A static import of tap would come too early.
  const { default: tests } = await import('tap')
  if (tests.results) {
    process.stderr.write(`after the end of the tests: ${error?.stack ?? error}\n`)
    process.exit(1)
  }
  innermost(tests).threw(Object(error))
}

type Running = Pick<Test, 'threw'> & Partial<Pick<Test, 'activeSubtests'>>

/** The innermost test that is running. */
function innermost(test: Running): Running {
  const [running] = test.activeSubtests ?? []
  return running ? innermost(running) : test
}

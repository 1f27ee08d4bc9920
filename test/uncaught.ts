import type { Test } from 'tap'

/*
 * Bundled tests use this module in place of `async-hook-domain`. That package follows every promise, which takes a
 * third of the time of a node in the same process. This module blames an uncaught error on the running test: tests of a
 * file run one after the other.
 */

/** tap makes one `Domain` for each test. The object need not do anything. */
export class Domain {
  destroy(): void {}
}

// Node.js also calls this for a rejection without a handler.
process.setUncaughtExceptionCaptureCallback((error) => void fail(error))

async function fail(error: Error): Promise<void> {
  // tap loads this module while loading itself: a static import would be too early.
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

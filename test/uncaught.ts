import type { Test } from 'tap'

/*
 * Replaces the package `async-hook-domain` in bundled tests. tap uses it to find the test that an uncaught error
 * belongs to. The package follows every promise. If a node ran in the same process as its test, this took a third of
 * the node's processor time. Our tests of a file run one after the other, so the error belongs to the running test.
 */

/** tap makes one `Domain` for each test. The object need not do anything. */
export class Domain {
  destroy(): void {}
}

// Node.js also calls this for a rejection without a handler.
process.setUncaughtExceptionCaptureCallback((error) => void fail(error))

async function fail(error: Error): Promise<void> {
  // tap loads this module while tap itself is still being loaded. So a static import of tap would be too early.
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
